"""What the configuration comes to."""

import sys
from pathlib import Path
from typing import Any

import pytest

from proxy.backends.assembly import backend_maintenance, resolved_backends, zookeeper_registration
from proxy.config.config import load
from proxy.config.errors import ConfigError

TWO = 'proxy.backends=["127.0.0.1:1", "127.0.0.1:2 weight=3"]'


@pytest.mark.parametrize(
    ("overrides", "periodic_tasks"),
    [
        ((), 2),
        ((TWO,), 2),
        ((TWO, "health.user=probe"), 3),
        (("health.user=probe",), 3),
        (("health.user=probe", "health.query_interval_s=0"), 2),
    ],
)
async def test_every_backend_is_probed_and_asked_queries_where_there_is_a_user_for_that(
    overrides: tuple[str, ...], periodic_tasks: int
) -> None:
    config = load(None, overrides)
    backends, names = await resolved_backends(config)
    maintenance = backend_maintenance(config, backends, names)
    assert len(maintenance.periodic_tasks) == periodic_tasks


async def test_limits_and_weights_are_those_of_the_configuration() -> None:
    config = load(None, (TWO, "proxy.backend_connections_max=1"))
    backends, _ = await resolved_backends(config)
    assert [(view.name, view.weight, view.connections_max) for view in backends.views()] == [
        ("127.0.0.1:1", 1, 1),
        ("127.0.0.1:2", 3, 1),
    ]
    leases = [backends.lease("user") for _ in range(2)]
    assert all(leases)
    assert backends.lease("user") is None


def test_without_an_ensemble_nothing_is_registered() -> None:
    assert zookeeper_registration(load(None), (10_001,)) is None


def test_an_ensemble_without_its_client_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "proxy.backends.zookeeper", raising=False)
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    with pytest.raises(ConfigError, match=r"pip install '.\[zookeeper\]'"):
        zookeeper_registration(load(None, ("zookeeper.ensemble=127.0.0.1:2181",)), (10_001,))


def test_zookeeper_announces_the_principal_of_each_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kazoo")
    nodes: list[Any] = []
    monkeypatch.setattr(
        "proxy.backends.zookeeper.Registration", lambda _ensemble, announced: nodes.extend(announced)
    )
    path = tmp_path / "starpruner.toml"
    path.write_text(
        '[zookeeper]\nensemble = "127.0.0.1:2181"\n'
        '[kerberos]\nprincipal = "hive/one@R"\nkeytab = "/etc/keytab"\n'
        '[[listener]]\nlisten = "127.0.0.1:1"\nkerberos_principal = "hive/balancer@R"\n',
        encoding="utf-8",
    )
    zookeeper_registration(load(path), (10_001, 10_002))
    first, second = nodes
    assert b"kerberos.principal=hive/one@R" in first.content
    assert b"kerberos.principal=hive/balancer@R" in second.content
