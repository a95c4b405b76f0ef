"""Runs of a dbt project through the proxy leave the Iceberg tables that they leave directly."""

from pathlib import Path

from iceberg_server import CATALOG, iceberg_server
from support.dbt_project import installed_dbt, runs_that_differ
from support.profile import only_deep
from support.proxies import patient

from demo.proxy_process import proxy_process


@only_deep("packages of a hundred megabytes, and minutes")
def test_each_run_of_a_dbt_project_leaves_the_same_iceberg_tables(tmp_path: Path) -> None:
    # In a session catalog by directories Iceberg's tables are not listed by SHOW TABLE EXTENDED, and dbt would
    # make each of them anew in each run. A session begins in the namespace `default`.
    (tmp_path / "iceberg" / CATALOG / "default").mkdir(parents=True)
    conf = {"spark.sql.defaultCatalog": CATALOG}
    dbt = installed_dbt()
    with (
        iceberg_server(tmp_path / "iceberg", conf=conf) as server,
        proxy_process(server.endpoint, tmp_path / "proxy", options=patient(files=True)) as proxy,
    ):
        assert not runs_that_differ(dbt, tmp_path / "project", "iceberg", server, proxy)
