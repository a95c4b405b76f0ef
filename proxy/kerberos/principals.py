"""Names of Kerberos: `service/host@REALM`, its parts, and the host that `_HOST` stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from proxy.kerberos.errors import KerberosError

# The host's own name in a configured principal, as Hadoop has it.
HOST_PATTERN: Final = "_HOST"

# As Hadoop's KerberosName reads a name. A backslash escapes a separator in MIT's text of a name: such a name could
# be read as another one.
_PART: Final = r"[^/@\\\x00-\x1f\x7f]+"
_NAME: Final = re.compile(rf"(?P<service>{_PART})(/(?P<host>{_PART}))?@(?P<realm>{_PART})")


@dataclass(frozen=True)
class Principal:
    """A name of one or two parts, in a realm."""

    service: str
    host: str | None
    realm: str

    def __str__(self) -> str:
        return f"{self.service}/{self.host}@{self.realm}" if self.host else f"{self.service}@{self.realm}"

    def at_host(self, host: str) -> Principal:
        """Return the name with the host in the place of `_HOST`, in lower case, as Hadoop writes it.

        >>> str(parse_principal("hive/_HOST@EXAMPLE.COM").at_host("Spark-1.example.com"))
        'hive/spark-1.example.com@EXAMPLE.COM'
        """
        return Principal(self.service, host.lower(), self.realm) if self.host == HOST_PATTERN else self


def parse_principal(text: str) -> Principal:
    """Return the parts of a name. Raises KerberosError for one without a realm, or with more than two parts."""
    found = _NAME.fullmatch(text)
    if found is None:
        raise KerberosError(f"{text[:100]!r} is not a principal of the form name@REALM or name/host@REALM")
    return Principal(found["service"], found["host"], found["realm"])
