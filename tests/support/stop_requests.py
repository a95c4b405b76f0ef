"""Stop requests as signals make them."""

import signal
import time

from proxy.stopping import StopRequests


def requested(number: signal.Signals = signal.SIGTERM) -> StopRequests:
    stop = StopRequests(time.monotonic)
    stop.request(number)
    return stop
