"""Handles of sessions that another process may use."""

from proxy.access.handle_owners import LocalHandleOwners
from proxy.wire.hs2.handles import HandleId, handle_id_of
from support.relay_dialogue import SESSION


class Elsewhere(LocalHandleOwners):
    """As if another process had opened those in `theirs`, or had let statements of those in `roaming` pass."""

    def __init__(self) -> None:
        super().__init__()
        self.theirs: set[HandleId] = set()
        self.roaming: set[HandleId] = set()

    def used_elsewhere(self, identifier: HandleId) -> bool:
        return identifier in self.theirs

    def is_local(self, identifier: HandleId) -> bool:
        return identifier not in self.roaming


def session_id() -> HandleId:
    identifier = handle_id_of(SESSION)
    assert identifier is not None
    return identifier
