"""The directory of the history: the configured one, one that workers share, or one that ends with the process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.config.serving import HistorySection


@contextmanager
def history_directory(settings: HistorySection, shared: Path | None = None) -> Generator[Path | None]:
    """The directory, None where nothing is kept. `shared` is one that ends with the last of the workers."""
    if not settings.enabled:
        yield None
    elif settings.path:
        # The writer makes the directory, and tries again if the disk is not there yet.
        yield Path(settings.path)
    elif shared is not None:
        yield shared / "history"
    else:
        with TemporaryDirectory(prefix="starpruner-history-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
