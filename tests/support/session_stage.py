"""A stage of sessions that share one state, with a clock of its own."""

from dataclasses import dataclass, field

from proxy.config.config import Config
from proxy.config.rewriting import RewriteSection, ShadowSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import SessionOpening
from proxy.session.shared_state import SharedState
from support.text_session import TextSession

FINISHED = Outcome(OutcomeKind.FINISHED, 1.0)


@dataclass
class Stage:
    """A process with a clock that the test sets."""

    now: float = 0.0
    rewrite: RewriteSection = field(default_factory=RewriteSection)
    shadow: ShadowSection = field(default_factory=ShadowSection)

    def __post_init__(self) -> None:
        self.shared = SharedState.of(Config(rewrite=self.rewrite, shadow=self.shadow), lambda: self.now)

    def session(self, owner: str = "ann") -> TextSession:
        return TextSession(self.shared, SessionOpening(owner=owner, login=owner, user=owner))
