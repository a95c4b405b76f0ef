"""Two proxies as processes: both know what is quarantined in the store that they share, and what is released."""

import time
from contextlib import ExitStack
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from support.clock import eventually
from support.hbase_gateway import GatewayInMemory, gateway_in_memory

from demo.hive import Endpoint, free_port
from demo.proxy_process import ProxyProcess, proxy_process
from proxy.session.feedback.quarantine_list import LEASE_S, Cause, QuarantineKind, SharedEntry
from proxy.session.sharing import lesson_rows
from rewriter import Rule


def told_by_a_third_one(gateway: GatewayInMemory) -> None:
    """A rule that gave a wrong answer at another proxy."""
    now = time.time()
    entry = SharedEntry(QuarantineKind.RULE, Rule.EXISTS.value, Cause.DIFFERENT, now, now + LEASE_S)
    value = lesson_rows.quarantine_value(entry, now, 0.0)
    gateway.rows[lesson_rows.quarantine_row(entry)] = {lesson_rows.QUARANTINE_COLUMN: value}


def rules_quarantined(proxy: ProxyProcess) -> float:
    """The number of rules, over all workers."""
    with urlopen(f"{proxy.admin_url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith('starpruner_quarantined{kind="rule"'))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_rule_is_quarantined_at_all_proxies_and_released_at_all(tmp_path: Path, workers: int) -> None:
    with gateway_in_memory() as gateway, ExitStack() as stack:
        settings = ["catalog.store=hbase", f"catalog.store_gateway=127.0.0.1:{gateway.port}"]
        nobody = Endpoint("127.0.0.1", free_port())

        def proxy(name: str, count: int) -> ProxyProcess:
            all_settings = [*settings, f"proxy.workers={count}"]
            options = tuple(option for setting in all_settings for option in ("--set", setting))
            return stack.enter_context(proxy_process(nobody, tmp_path / name, options=options))

        told_by_a_third_one(gateway)
        one, other = proxy("one", 1), proxy("other", workers)
        eventually(lambda: (rules_quarantined(one), rules_quarantined(other)) == (1, workers))
        with urlopen(f"{one.admin_url}/metrics", timeout=60) as answer:
            assert b'starpruner_shared_lessons_total{result="learned"}' in answer.read()
        release = Request(f"{one.admin_url}/quarantine/rule/{Rule.EXISTS.value}/release", method="POST")
        with urlopen(release, timeout=60) as answer:
            assert b"rule exists" in answer.read()
        eventually(lambda: (rules_quarantined(one), rules_quarantined(other)) == (0, 0))
        with pytest.raises(URLError, match="404"):
            urlopen(release, timeout=60)
