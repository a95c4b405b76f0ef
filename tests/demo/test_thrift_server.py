"""The embedded server starts, or says why it does not."""

from pathlib import Path

import pytest
from support.profile import only_deep

from demo.java import Java
from demo.thrift_server import ServerOptions, ThriftServer, ThriftServerError, only_user, thrift_server


def test_a_directory_serves_one_server_at_a_time(tmp_path: Path) -> None:
    with only_user(tmp_path), pytest.raises(ThriftServerError, match="another --dir"), only_user(tmp_path):
        pass
    with only_user(tmp_path):
        assert (tmp_path / "lock").exists()


@only_deep("starts Java for an error message")
def test_a_server_that_does_not_start_shows_the_end_of_its_log(java: Java, tmp_path: Path) -> None:
    settings = ServerOptions(tmp_path, conf={"spark.driver.cores": "many"})
    failing = thrift_server(settings, java, progress=lambda _: None)
    with pytest.raises(ThriftServerError, match=r"(?s)exit code 1.*Driver cores must be"), failing:
        pytest.fail("it started")


def test_what_the_server_keeps_is_in_its_directory_and_it_listens_on_loopback_only(
    spark: ThriftServer,
) -> None:
    assert {"metastore_db", "derby.log", "tmp", "logs"} <= {path.name for path in spark.directory.iterdir()}
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    everywhere = {line.split()[1] for line in listening.splitlines() if line.split()[3] == "0A"}
    ports = (spark.endpoint.port, int(spark.ui_url.rpartition(":")[2]))
    assert not {f"{address}:{port:04X}" for address in ("00000000", "0" * 32) for port in ports} & everywhere
