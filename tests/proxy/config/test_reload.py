"""Which of the configuration counts only after a restart, where it is read anew."""

import pytest

from proxy.config.config import Config, load
from proxy.config.reload import counting_after_restart
from proxy.config.serving import ListenerSection


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("proxy.listen=127.0.0.1:1", "[proxy]"),
        ("proxy.backend=127.0.0.1:1", ""),
        ('proxy.backends=["127.0.0.1:1"]', ""),
        ("backend.tls=true", "[backend]"),
        ("http.body_s=1", "[http]"),
        ("admin.listen=127.0.0.1:1", "[admin]"),
        ("health.user=probe", "[health]"),
        ("zookeeper.user=us", "[zookeeper]"),
        ("log.level=debug", "[log]"),
        ('proxy_users.hue=["anna"]', "[proxy_users]"),
        ("rewrite.enabled=false", ""),
        ("rewrite.rerun_within_s=1", "rewrite.rerun_within_s"),
        ("rewrite.key_queries_at_once_max=1", "rewrite.key_queries_at_once_max"),
        ("rewrite.key_cache_bytes_max=1024", "rewrite.key_cache_bytes_max"),
        ("shadow.fraction=1", ""),
        ("shadow.at_once_max=1", "shadow.at_once_max"),
        ("shadow.differences_path=here", "shadow.differences_path"),
        ("shadow.differences_bytes_max=1024", "shadow.differences_bytes_max"),
        ("catalog.facts_ttl_s=1", ""),
        ("catalog.store_path=here", "catalog.store_path"),
        ("catalog.store_gateway=hbase:9090", "catalog.store_gateway"),
        ("catalog.store_bytes_max=65536", "catalog.store_bytes_max"),
        ("files.index=s.files", ""),
        ("splits.enabled=false", ""),
    ],
)
def test_what_counts_after_a_restart_is_told_as_its_section_or_its_key(override: str, told: str) -> None:
    assert counting_after_restart(Config(), load(None, (override,))) == ((told,) if told else ())


def test_another_listener_counts_after_a_restart() -> None:
    after = Config(listener=(ListenerSection(listen="127.0.0.1:1"),))
    assert counting_after_restart(Config(), after) == ("[listener]",)


def test_several_changes_are_told_in_the_order_of_the_file() -> None:
    after = load(
        None, ("rewrite.rerun_within_s=1", "log.level=debug", "proxy.connections_max=1", "proxy.drain_s=1")
    )
    assert counting_after_restart(Config(), after) == ("[proxy]", "rewrite.rerun_within_s", "[log]")
