"""What the proxy counts of what it did to statements."""

import re
from collections import Counter
from urllib.request import urlopen

from demo.proxy_process import ProxyProcess

_REWRITTEN = re.compile(r'^starpruner_statements_total\{outcome="rewritten"\} (\S+)$', re.MULTILINE)
_KEY_CHECKS = re.compile(r'^starpruner_key_checks_total\{verdict="(\w+)"\} (\S+)$', re.MULTILINE)
_CONNECTIONS = re.compile(r"^starpruner_connections_open (\S+)$", re.MULTILINE)
_BACKEND_CONNECTIONS = re.compile(r"^starpruner_backend_connections\{[^}]*\} (\S+)$", re.MULTILINE)
ANSWER_SECONDS_MAX = 60


def rewritten_count(proxy: ProxyProcess) -> float:
    """How many statements it has rewritten so far."""
    return _counted(proxy, _REWRITTEN)


def recovered_count(proxy: ProxyProcess) -> float:
    """How many rewritten statements have failed so far, and fell back to the original."""
    return ended_count(proxy, "recovered")


def ended_count(proxy: ProxyProcess, outcome: str) -> float:
    """How many rewritten statements have had this outcome so far."""
    series = rf'^starpruner_statement_seconds_count\{{outcome="{outcome}",sent="rewritten"\}} (\S+)$'
    return _counted(proxy, re.compile(series, re.MULTILINE))


def own_session_count(proxy: ProxyProcess) -> int:
    """How many sessions of its own it has at its one backend: their connections are no client's."""
    return int(_counted(proxy, _BACKEND_CONNECTIONS) - _counted(proxy, _CONNECTIONS))


def key_checks(proxy: ProxyProcess) -> Counter[str]:
    """How many checks of remembered keys have ended so far, by what came of them."""
    with urlopen(f"{proxy.admin_url}/metrics", timeout=ANSWER_SECONDS_MAX) as answer:
        found = _KEY_CHECKS.findall(answer.read().decode())
    return Counter({verdict: int(float(count)) for verdict, count in found})


def _counted(proxy: ProxyProcess, series: re.Pattern[str]) -> float:
    with urlopen(f"{proxy.admin_url}/metrics", timeout=ANSWER_SECONDS_MAX) as answer:
        found = series.search(answer.read().decode())
    return 0 if found is None else float(found[1])
