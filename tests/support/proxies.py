"""Options of proxies under test."""

# Far more than a query of the proxy's own takes on a busy machine, which makes a rewrite slow, not absent.
DEADLINE_S = 120


def options(*settings: str) -> tuple[str, ...]:
    """The command line's words for settings such as `rewrite.cost_gate=false`."""
    return tuple(word for setting in settings for word in ("--set", setting))


def patient(*settings: str, files: bool = False) -> tuple[str, ...]:
    """Options of a proxy that rewrites whether it pays or not, and that waits on a busy machine."""
    deadlines = ["rewrite.key_query_deadline_s", "catalog.query_deadline_s"]
    if files:
        deadlines.append("files.query_deadline_s")
    waits = (f"{deadline}={DEADLINE_S}" for deadline in deadlines)
    return options(*waits, "rewrite.cost_gate=false", *settings)
