"""Options of proxies under test."""

from collections.abc import Sequence


def options(*settings: str) -> tuple[str, ...]:
    """The command line's words for settings such as `rewrite.cost_gate=false`."""
    return tuple(word for setting in settings for word in ("--set", setting))


def patient(*settings: str, seconds: int = 120, files: bool = False) -> Sequence[str]:
    """Options of a proxy that rewrites whether it pays or not, and that waits on a busy machine."""
    deadlines = ["rewrite.key_query_deadline_s", "catalog.query_deadline_s"]
    if files:
        deadlines.append("files.query_deadline_s")
    waits = (f"{deadline}={seconds}" for deadline in deadlines)
    return options(*waits, "rewrite.cost_gate=false", *settings)
