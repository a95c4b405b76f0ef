"""Threads that wrap and unwrap long messages: python-gssapi calls MIT's library without Python's lock."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final

# A longer message is given to a thread: to unwrap this much blocks the event loop for 0.6 ms (auth-conf), and to
# hand it to a thread and back takes about 0.1 ms.
THREAD_BYTES_MIN: Final = 128 * 1024
# More threads than processors only take turns. A few are enough for one event loop, which copies each byte twice.
_THREADS_MAX: Final = 8


@cache
def wrapping_threads() -> ThreadPoolExecutor:
    """Return the threads of the process."""
    return ThreadPoolExecutor(min(_THREADS_MAX, os.cpu_count() or 1), thread_name_prefix="wrapping")
