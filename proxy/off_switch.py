"""The switch by which every statement goes as it came, at once and in all processes: a file.

Each process looks for the file once a second. So `touch` switches rewriting off even if the admin port does not
answer, and workers need no message. Statements that were decided before go on as they are.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 1.0
_WAIT_S: Final = 5.0


class OffSwitch:
    """The switch of one process. Without a path statements are always rewritten."""

    def __init__(self, path: str = "") -> None:
        self.path = Path(path) if path else None
        self.is_off = False
        # One look or change at a time: each takes a thread, and an earlier look knows nothing of a later change.
        self._using = asyncio.Lock()

    async def watch(self) -> None:
        """Look for the file until cancelled. A file system that hangs changes nothing."""
        error = ""
        while self.path is not None:
            before, error = error, ""
            async with self._using:
                try:
                    self._set(await asyncio.to_thread(self.path.exists))
                except OSError as failed:
                    error = str(failed)
            if error and error != before:
                _log.warning("rewrite.off_file cannot be looked for, so it switches nothing: %s", error)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def turn(self, *, off: bool) -> None:
        """Make the file, or remove it. Raises OSError, also if the file system does not answer an earlier call."""
        if self.path is None:
            return
        async with asyncio.timeout(_WAIT_S):
            await self._using.acquire()
        try:
            await asyncio.to_thread(self.path.touch if off else partial(self.path.unlink, missing_ok=True))
            self._set(off)
        finally:
            self._using.release()

    def _set(self, off: bool) -> None:  # noqa: FBT001 - the state itself
        if off is not self.is_off:
            self.is_off = off
            _log.warning(
                "rewriting is switched off: %s exists" if off else "rewriting is on: %s is gone", self.path
            )
