"""Rules that turn a principal into a short user name: Hadoop's `hadoop.security.auth_to_local`.

    RULE:[2:$1@$0](hive@EXAMPLE.COM)s/.*/etl/      hive/host@EXAMPLE.COM is the user etl
    RULE:[1:$1@$0](.*@PARTNER.COM)s/@.*///L        Anna@PARTNER.COM is the user anna
    DEFAULT                                        anna@EXAMPLE.COM is anna, in the proxy's own realm alone

The first rule that fits decides. A principal that no rule fits is let in as nobody, as on a Hadoop server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.kerberos.errors import KerberosError
from proxy.kerberos.principals import Principal

DEFAULT: Final = "DEFAULT"

# As Hadoop's KerberosName reads a rule.
_RULE: Final = re.compile(
    r"RULE:\[(?P<parts>\d+):(?P<format>[^\]]*)\](\((?P<match>[^)]*)\))?"
    r"(s/(?P<found>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<lower>L)?"
)
_REFERENCE: Final = re.compile(r"\$(\d)")
# A short name with these would be read as a principal again, or over HTTP as a name and a password.
_NOT_SIMPLE: Final = re.compile(r"[/@:\\\0]")


@dataclass(frozen=True)
class _Rule:
    parts: int
    format: str
    match: re.Pattern[str] | None
    found: re.Pattern[str] | None
    replacement: str
    replaces_all: bool
    lowers: bool

    def short_name(self, parts: Sequence[str]) -> str | None:
        if len(parts) - 1 != self.parts:
            return None
        base = _REFERENCE.sub(lambda reference: parts[int(reference[1])], self.format)
        if self.match is not None and not self.match.fullmatch(base):
            return None
        if self.found is not None:
            base = self.found.sub(self.replacement, base, count=0 if self.replaces_all else 1)
        return base.lower() if self.lowers else base


class NameRules:
    """The rules of a configuration, in their order."""

    def __init__(self, texts: Sequence[str], default_realm: str) -> None:
        """Take the realm whose names DEFAULT cuts. Raises KerberosError for a rule that cannot be read."""
        self._realm = default_realm
        self._rules = tuple(None if text.strip() == DEFAULT else _parsed(text.strip()) for text in texts)

    def short_name(self, principal: Principal) -> str:
        """Return the user of a principal. Raises KerberosError if no rule fits."""
        parts = [principal.realm, principal.service]
        if principal.host is not None:
            parts.append(principal.host)
        for rule in self._rules:
            name = self._default_name(principal) if rule is None else rule.short_name(parts)
            if name is None:
                continue
            if not name or _NOT_SIMPLE.search(name):
                raise KerberosError(
                    f"a rule of kerberos.auth_to_local makes {name!r} of {principal}: no user's name"
                )
            return name
        raise KerberosError(f"no rule of kerberos.auth_to_local fits {principal}")

    def _default_name(self, principal: Principal) -> str | None:
        return principal.service if principal.realm == self._realm else None


def _parsed(text: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise KerberosError(f"{text!r} is neither DEFAULT nor RULE:[n:format](match)s/from/to/g/L")
    parts = int(found["parts"])
    if any(int(reference) > parts for reference in _REFERENCE.findall(found["format"])):
        raise KerberosError(f"{text!r} refers to a part past the {parts} that it is for")
    try:
        # ASCII, as Java reads \w, \d and \s.
        match = None if found["match"] is None else re.compile(found["match"], re.ASCII)
        pattern = None if found["found"] is None else re.compile(found["found"], re.ASCII)
        groups = 0 if pattern is None else pattern.groups
        if any(int(reference) > groups for reference in _REFERENCE.findall(found["replacement"] or "")):
            raise KerberosError(f"{text!r} refers to a group past the {groups} of its pattern")
        return _Rule(
            parts,
            found["format"],
            match,
            pattern,
            _replacement(found["replacement"] or ""),
            replaces_all=found["all"] is not None,
            lowers=found["lower"] is not None,
        )
    except (re.error, IndexError) as error:
        raise KerberosError(f"{text!r} has a pattern that cannot be read: {error}") from error


def _replacement(java: str) -> str:
    r"""Return a replacement of Java's as Python writes it.

    >>> _replacement("$1_x")
    '\\g<1>_x'
    """
    return _REFERENCE.sub(r"\\g<\1>", java.replace("\\", "\\\\"))
