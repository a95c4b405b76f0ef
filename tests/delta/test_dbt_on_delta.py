"""Runs of a dbt project through the proxy leave the Delta tables that they leave directly."""

from pathlib import Path

from pipeline_server import PipelineServer
from support.dbt_project import installed_dbt, runs_that_differ
from support.profile import only_deep

from demo.proxy_process import ProxyProcess


@only_deep("packages of a hundred megabytes, and minutes")
def test_each_run_of_a_dbt_project_leaves_the_same_delta_tables(
    delta_server: PipelineServer, delta_proxy: ProxyProcess, tmp_path: Path
) -> None:
    assert not runs_that_differ(installed_dbt(), tmp_path, "delta", delta_server, delta_proxy)
