"""What the proxy counts of what it did to statements."""

import re
from urllib.request import urlopen

from demo.proxy_process import ProxyProcess

_NARROWED = re.compile(r'^starpruner_statements_total\{outcome="narrowed"\} (\S+)$', re.MULTILINE)
_RESCUED = re.compile(
    r'^starpruner_statement_seconds_count\{end="rescued",sent="rewritten"\} (\S+)$', re.MULTILINE
)
ANSWER_SECONDS_MAX = 60


def narrowed_count(proxy: ProxyProcess) -> float:
    """How many statements it has rewritten so far."""
    return _counted(proxy, _NARROWED)


def rescued_count(proxy: ProxyProcess) -> float:
    """How many rewritten statements have failed so far, and were run again as they came."""
    return _counted(proxy, _RESCUED)


def _counted(proxy: ProxyProcess, series: re.Pattern[str]) -> float:
    with urlopen(f"{proxy.admin_url}/metrics", timeout=ANSWER_SECONDS_MAX) as answer:
        found = series.search(answer.read().decode())
    return 0 if found is None else float(found[1])
