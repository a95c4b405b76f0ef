"""Steps that a client takes, and what it saw of each, errors included."""

from collections.abc import Callable, Mapping

from support.beeline_clients import comparable_message

Step = Callable[[], object]


def outcomes(steps: Mapping[str, Step]) -> dict[str, object]:
    """By step, what it returned or how it failed."""
    return {name: _outcome(step) for name, step in steps.items()}


def _outcome(step: Step) -> object:
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what its user sees
        return "failed", type(error).__name__, comparable_message(str(error))
