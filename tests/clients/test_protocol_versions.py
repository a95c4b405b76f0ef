"""Every version of the protocol that a client may ask for is answered as by the server."""

import pytest
from dialogue import Dialogue, dialogue

from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

# By number: V1 is 0, and the newest that Hive's own definition knows, V11, is 10.
VERSIONS = range(11)
# From here on results come column by column.
COLUMNAR = 5

VALUES = "SELECT * FROM VALUES (1, 'a', 1.5D, true), (NULL, NULL, NULL, NULL) AS t(a, b, c, d)"
STAR_JOIN = """SELECT v.* FROM small_star.visits v JOIN small_star.days d ON v.ds = d.ds
WHERE d.weekday = 'Sunday' ORDER BY v.id"""


def _reads_a_little(talk: Dialogue, version: int) -> None:
    session = talk.open_session(version)
    for sql in (VALUES, STAR_JOIN, "SELECT * FROM no_such_table"):
        operation = talk.execute(session, sql)
        talk.finish(operation)
        talk.read(operation)
    talk.call("CloseSession", sessionHandle=session)


@pytest.mark.usefixtures("small_star")
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: f"V{version + 1}")
def test_a_version_is_spoken_as_by_the_server(spark: ThriftServer, proxy: ProxyProcess, version: int) -> None:
    with dialogue(proxy.endpoint) as proxied:
        _reads_a_little(proxied, version)
    with dialogue(spark.endpoint) as direct:
        _reads_a_little(direct, version)
    assert proxied.answers == direct.answers
    fetched = [answer for name, answer in proxied.answers if name == "FetchResults"]
    assert "TRowSet" in repr(fetched[0])
    assert ("TI32Column" in repr(fetched[0])) == (version >= COLUMNAR)
