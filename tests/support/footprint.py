"""What a process holds at a moment, as Linux tells it."""

import os
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What follows the command's name, which may hold spaces, up to the user's and the system's ticks.
_USER_TICKS, _SYSTEM_TICKS = 11, 12


@dataclass(frozen=True)
class Footprint:
    """Memory, open files and processor time."""

    bytes: int
    files: int
    cpu_s: float


def footprint(pid: int) -> Footprint:
    """That of a process now."""
    process = Path(f"/proc/{pid}")
    resident = int((process / "statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    ticks = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    cpu_s = (int(ticks[_USER_TICKS]) + int(ticks[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")
    return Footprint(resident, len(list((process / "fd").iterdir())), cpu_s)
