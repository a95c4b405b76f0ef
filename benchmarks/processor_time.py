"""Processor time of another process, to the nanosecond where the system is Linux."""

import sys
import time

# Linux numbers the clock of a process's processor time by its id (clock_getcpuclockid(3)): the id inverted, then
# three bits that say "of the whole process" and "as scheduled". The ticks of /proc are 10 ms, too coarse for a
# short statement.
_PROCESS_SHIFT, _AS_SCHEDULED = 3, 2


def processor_s(process: int) -> float | None:
    """The seconds that all threads of a process have run until now; None where they are not known."""
    if sys.platform != "linux":
        return None
    try:
        return time.clock_gettime(~process << _PROCESS_SHIFT | _AS_SCHEDULED)
    except OSError:
        return None
