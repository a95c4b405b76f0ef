"""Session settings: a client sets them by `SET starpruner.enabled=false`, or in the URL that it connects with.

Spark keeps such settings too, since it accepts any name. So the proxy answers only where Spark cannot: about a
name or a value that is not one of the proxy's, and about the value of a setting that was not set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec

from proxy.config.config import Config
from proxy.config.types import Consistency, Mode, Staleness, TablePatternOrAll
from proxy.operations.session_port import LABEL_CHARS_MAX
from rewriter.sql.classify import COMMENT_OR_SPACE, first_word

PREFIX: Final = "starpruner."
# Prefixes of the settings behind the `?` of a JDBC URL in OpenSession.
_IN_OPEN_SESSION: Final = ("set:hiveconf:", "")

# Comments, as tools put them in front of what their users write.
_BEFORE: Final = rf"(?:{COMMENT_OR_SPACE})*+"
# `SET name`, `SET name = value` and `RESET name`, as Spark reads them. A value runs to the end of the text, where
# a semicolon is cut off. A client chooses the length of the text, so nothing in it is tried twice.
_SET: Final = re.compile(
    rf"{_BEFORE}(?P<verb>SET|RESET)(?:\s++|(?:{COMMENT_OR_SPACE})++(?=`))`?starpruner\.(?P<name>[\w.]++)`?"
    r"\s*+(?:=(?P<value>.*)|;?\s*+)",
    re.IGNORECASE | re.DOTALL,
)
_RESET_ALL: Final = re.compile(rf"{_BEFORE}RESET\s*+;?\s*+", re.IGNORECASE | re.DOTALL)
_QUOTES: Final = "'\"`"
# A value in backticks, behind which comments may stand. Comments behind any other value are a part of it.
_IN_BACKTICKS: Final = re.compile(rf"(`[^`]*+`)(?:{COMMENT_OR_SPACE}|;)*+", re.DOTALL)
# Characters of a wrong value that an error quotes.
_QUOTED_CHARS_MAX: Final = 100


class SessionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one session, each as in the section [rewrite] of the configuration, and its label."""

    enabled: bool
    mode: Mode
    consistency: Consistency
    cost_gate: bool
    key_staleness_s: Staleness
    keys_remembered_s: Staleness
    skewed_by: bool
    merge_tables: tuple[TablePatternOrAll, ...]
    label: Annotated[str, msgspec.Meta(max_length=LABEL_CHARS_MAX)] = ""

    @classmethod
    def configured(cls, config: Config, own: Mapping[str, str]) -> SessionSettings:
        """The settings of a session that has set some of them itself."""
        configured = {name: getattr(config.rewrite, name) for name in cls.__struct_fields__ if name != "label"}
        given = {
            name: _listed(value) if isinstance(configured.get(name), tuple) else value
            for name, value in own.items()
        }
        return msgspec.convert({**configured, **given}, cls, strict=False)


@dataclass(frozen=True)
class SettingStatement:
    """A statement about a session setting. `own` has the settings after it; `error` is a sentence."""

    verb: Literal["set", "show", "reset"]
    name: str
    own: Mapping[str, str]
    error: str = ""


def settings_of_opening(configuration: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The settings of a client's OpenSession, and the names of those that are not understood.

    The names go into the log, and the values do not.
    """
    own: dict[str, str] = {}
    wrong = []
    for key, value in configuration.items():
        for scheme in _IN_OPEN_SESSION:
            if key.startswith(scheme + PREFIX):
                name = key.removeprefix(scheme + PREFIX)
                if _error(name, value):
                    wrong.append(PREFIX + _in_one_line(name))
                else:
                    own[name] = value
                break
    return own, tuple(wrong)


def setting_statement(sql: str, own: Mapping[str, str]) -> SettingStatement | None:
    """The setting that a statement sets, shows or resets; None where it is about something else.

    >>> setting_statement("SET starpruner.enabled = false", {})
    SettingStatement(verb='set', name='enabled', own={'enabled': 'false'}, error='')
    """
    is_one = first_word(sql) in {"set", "reset"}
    if is_one and _RESET_ALL.fullmatch(sql):
        return SettingStatement("reset", "", {}) if own else None
    found = _SET.fullmatch(sql) if is_one else None
    if found is None:
        return None
    name, value = found["name"].lower(), found["value"]
    if name not in SessionSettings.__struct_fields__:
        return SettingStatement("set", name, own, _unknown(name))
    if found["verb"].lower() == "reset":
        return SettingStatement("reset", name, {key: kept for key, kept in own.items() if key != name})
    if value is None:
        return SettingStatement("show", name, own)
    quoted = _IN_BACKTICKS.fullmatch(value.strip())
    value = _unquoted(quoted[1] if quoted is not None else value.strip().removesuffix(";").rstrip())
    error = _error(name, value)
    return SettingStatement("set", name, own if error else {**own, name: value}, error)


def _error(name: str, value: str) -> str:
    """The reason why a value cannot be set, as a sentence; empty where it can."""
    if name not in SessionSettings.__struct_fields__:
        return _unknown(name)
    try:
        SessionSettings.configured(Config(), {name: value})
    except msgspec.ValidationError as error:
        said = str(error).partition(" - at `$")[0]
        return f"{PREFIX}{name} cannot be {value[:_QUOTED_CHARS_MAX]!r}: {said}"
    return ""


def _unknown(name: str) -> str:
    names = ", ".join(PREFIX + known for known in SessionSettings.__struct_fields__)
    return f"{PREFIX}{_in_one_line(name)} is no setting of a session; these are: {names}"


def _in_one_line(name: str) -> str:
    """The name in one line: a name from a URL may hold anything."""
    return name[:_QUOTED_CHARS_MAX].encode("unicode_escape").decode()


def _listed(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES else value
