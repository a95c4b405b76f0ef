"""Child processes end with us, however we end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from demo.child import LOG_TAIL_LINES, Child

PROMPTLY_S = 30

PARENT = """
import sys, time
from pathlib import Path
from demo.child import Child
directory = Path(sys.argv[1])
child = Child.start(["sleep", "600"], log=directory / "log", directory=directory, environment={})
print(child.process.pid, flush=True)
time.sleep(600)
"""


def _start(script: str, directory: Path) -> Child:
    return Child.start(["/bin/sh", "-c", script], log=directory / "log", directory=directory, environment={})


def _is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def _assert_ends(pid: int) -> None:
    deadline = time.monotonic() + PROMPTLY_S
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(pid)


def test_leaving_the_context_stops_the_child(tmp_path: Path) -> None:
    with _start("exec sleep 600", tmp_path) as child:
        assert child.exit_code is None
    assert child.exit_code == -signal.SIGTERM


def test_a_child_whose_parent_is_killed_is_stopped_too(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _is_running(pid)
        parent.kill()
    _assert_ends(pid)


IMPATIENT = """
import sys, time
from pathlib import Path
from demo import child
child.LEASH = child.LEASH.replace(f"sleep {child.STOP_SECONDS_MAX}", "sleep 1")
directory = Path(sys.argv[1])
stubborn = ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done"]
with child.Child.start(stubborn, log=directory / "log", directory=directory, environment={}) as running:
    while "deaf" not in running.log_tail():
        time.sleep(0.05)
    print(running.process.pid, flush=True)
    time.sleep(600)
"""


def test_a_child_is_stopped_although_a_second_ctrl_c_interrupts_the_stopping(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert _is_running(pid)
        parent.send_signal(signal.SIGINT)
    _assert_ends(pid)


def test_a_child_does_not_get_the_terminals_ctrl_c(tmp_path: Path) -> None:
    with _start("exec sleep 600", tmp_path) as child:
        assert os.getpgid(child.process.pid) != os.getpgid(0)


def test_the_log_tail_is_the_end_of_both_output_streams(tmp_path: Path) -> None:
    with _start("seq 1 1000; echo the error >&2; exit 3", tmp_path) as child:
        assert child.process.wait(PROMPTLY_S) == 3
        lines = child.log_tail().splitlines()
    assert lines[-2:] == ["1000", "the error"]
    assert len(lines) == LOG_TAIL_LINES
