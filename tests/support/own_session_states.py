"""The states in which the proxy has a session of its own, as far as sessions know of them."""

from proxy.operations.session_port import KnownState


class OpenStates:
    """A session of the proxy's own in each state that a session was in when it decided."""

    def __init__(self) -> None:
        self._open: dict[bytes, KnownState] = {}

    def prepare(self, state: KnownState | None) -> None:
        """Have a session in that state, as the rewrite service does before each decision."""
        if state is not None:
            self._open[state.digest] = state

    def renew(self, digest: bytes) -> None:
        """There is nothing that could be old."""

    def state_of(self, digest: bytes) -> KnownState | None:
        return self._open.get(digest)
