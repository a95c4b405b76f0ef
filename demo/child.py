"""A child process that never outlives its parent, with its output in a log file."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

# Spark's shutdown hooks take two or three seconds on a small machine; after this time it is killed.
STOP_SECONDS_MAX = 20

# Enough for a Java stack trace with its causes, little enough for a terminal.
LOG_TAIL_LINES = 40
LOG_TAIL_BYTES_MAX = 64 * 1024

# A shell that reads its standard input, which the parent holds open and never writes to: the read ends when the
# parent has ended, in whatever way. Unlike prctl(PR_SET_PDEATHSIG) it works on macOS, and needs no code between
# fork and exec.
LEASH = f'read -r _; kill "$1" && sleep {STOP_SECONDS_MAX} && kill -9 "$1" 2>/dev/null'


@dataclass(frozen=True)
class Child:
    """A running command; leaving the context stops it."""

    process: subprocess.Popen[bytes]
    leash: subprocess.Popen[bytes]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        log: Path,
        directory: Path,
        environment: Mapping[str, str],
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> Self:
        """Starts a command in a process group of its own: the parent alone handles the terminal's Ctrl-C."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        leash = subprocess.Popen(
            ["/bin/sh", "-c", LEASH, "leash", str(process.pid)], stdin=subprocess.PIPE, process_group=0
        )
        return cls(process, leash, log, stop_signal)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    def stop(self) -> int:
        """Asks the process to end, and kills it after a while; returns its exit code."""
        self.process.send_signal(self.stop_signal)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        # The leash ends last: if a second Ctrl-C ends us before, it still ends the child.
        self.leash.kill()
        self.leash.communicate()
        return code

    def log_tail(self) -> str:
        """The last lines of the child's output, for an error message."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES_MAX))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
