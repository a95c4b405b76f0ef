"""The process's limit of memory: that of its cgroups (a container, a systemd unit), or the machine's memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_CGROUPS: Final = Path("/sys/fs/cgroup")
# The limit if the system tells none, as on systems other than Linux: too high to matter.
UNKNOWN: Final = 1 << 40


def memory_limit(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """The bytes that the process may use before the kernel ends it.

    Every cgroup around it counts: a container's own is the root that it sees, and a systemd unit's lies below.
    """
    limits = [_machine_bytes()]
    for file in _limit_files(proc, cgroups):
        try:
            text = file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            # A container sees its own cgroup as the root, under a path that is the machine's.
            continue
        # "max" says that there is none.
        limits += [int(text)] if text.isdecimal() else []
    return min(limits)


def _limit_files(proc: Path, cgroups: Path) -> Iterator[Path]:
    try:
        # A cgroup's name may have any bytes, line ends of Unicode among them.
        text = (proc / "self" / "cgroup").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    for line in text.split("\n"):
        _, _, described = line.partition(":")
        controllers, colon, path = described.partition(":")
        if not colon:
            continue
        if not controllers:
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        below = root / path.lstrip("/")
        yield from (each / name for each in (below, *below.parents) if each.is_relative_to(root))


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return UNKNOWN
