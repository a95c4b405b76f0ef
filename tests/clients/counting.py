"""What the proxy counts of what it did to statements."""

import re
from urllib.request import urlopen

from demo.proxy_process import ProxyProcess

_NARROWED = re.compile(r'^starpruner_statements_total\{outcome="narrowed"\} (\S+)$', re.MULTILINE)
ANSWER_SECONDS_MAX = 60


def narrowed_count(proxy: ProxyProcess) -> float:
    """How many statements it has rewritten so far."""
    with urlopen(f"{proxy.admin_url}/metrics", timeout=ANSWER_SECONDS_MAX) as answer:
        found = _NARROWED.search(answer.read().decode())
    return 0 if found is None else float(found[1])
