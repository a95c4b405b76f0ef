"""Small sides that are read at a snapshot: what reaches the server, and what changes meanwhile."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from support.fault_acts import First
from support.fault_proxy import Fault, Middle
from support.proxies import patient
from support.server_version import SNAPSHOTS_IN_PLANS, needs, version_of

from demo.hive import Row, connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from rewriter import SkipReason, UnpinnedReason

DATABASE = "named_snapshots"
STATEMENT = "SELECT f.k, f.v FROM fact f JOIN dim d ON f.k = d.k WHERE d.g = 1 ORDER BY f.k"
KEY_QUERY = r"^SELECT \S+ AS key"
NARROWED = r"FROM \(SELECT \* FROM fact"
VERSION = "dim VERSION AS OF "

WANTED = [(3, 21), (50, 350)]
SWAPPED = [(7, 49), (90, 630)]
# Of all that is wanted nothing is left: whoever mixes both versions has an empty answer.
SWAP = "INSERT OVERWRITE dim VALUES (7, 1, 'a'), (90, 1, 'b')"


@dataclass(frozen=True)
class Lake:
    """A proxy whose backend is the server behind a man in the middle, and two tables."""

    server: PipelineServer
    middle: Middle
    proxy: ProxyProcess

    @contextmanager
    def proxied(self, user: str = "demo") -> Iterator[hive.Connection]:
        with closing(connect(self.proxy.endpoint, user=user)) as session:
            self._enter(session)
            yield session

    @contextmanager
    def direct(self) -> Iterator[hive.Connection]:
        with closing(connect(self.server.endpoint)) as session:
            self._enter(session)
            yield session

    @staticmethod
    def _enter(session: hive.Connection) -> None:
        """Use a catalog of the session's own that keeps no table: it sees each commit at once."""
        ((_, warehouse),) = run(session, "SET spark.sql.catalog.ice.warehouse")
        for name, value in (
            ("", "org.apache.iceberg.spark.SparkCatalog"),
            *((".type", "hadoop"), (".warehouse", warehouse), (".cache-enabled", "false")),
        ):
            run(session, f"SET `spark.sql.catalog.lake{name}`={value}")
        run(session, f"USE lake.{DATABASE}")

    def directly(self, *statements: str) -> list[Row]:
        """The answer to the last one, of a client of the server itself."""
        with self.direct() as session:
            return [run(session, statement) for statement in statements][-1]

    def texts(self, pattern: str = "") -> list[str]:
        """The statements that reached the server, of those that begin so."""
        texts = (call.statement for call in self.middle.calls if call.name == "ExecuteStatement")
        return [text for text in texts if pattern in text]

    def asked(self, session: hive.Connection) -> tuple[list[Row], str]:
        """The answer to the statement, and the text that it came from."""
        self.middle.calls.clear()
        rows = run(session, STATEMENT)
        # Behind it there may be statements of a session of the proxy's own.
        return rows, self.texts("ORDER BY f.k")[-1]


def explained(session: hive.Connection, statement: str = STATEMENT) -> str:
    return "\n".join(line for (line,) in run(session, f"EXPLAIN REWRITE {statement}"))


@pytest.fixture(scope="module")
def lake(iceberg_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with closing(connect(iceberg_server.endpoint)) as session:
        run(session, f"CREATE DATABASE ice.{DATABASE}")
    options = patient("rewrite.rerun_within_s=600", "rewrite.key_snapshot_s=300", files=True)
    with closing(Middle(iceberg_server.endpoint)) as middle:
        threading.Thread(target=middle.serve, daemon=True).start()
        with proxy_process(middle.endpoint, tmp_path_factory.mktemp("snapshots"), options=options) as proxy:
            yield Lake(iceberg_server, middle, proxy)


@pytest.fixture(autouse=True)
def tables(lake: Lake) -> None:
    """Both tables anew, the fact in ten files that each hold a tenth of the keys."""
    _ = lake.directly(
        "DROP TABLE IF EXISTS fact PURGE",
        "DROP TABLE IF EXISTS dim PURGE",
        "CREATE TABLE fact (k INT, v INT) USING iceberg",
        "INSERT INTO fact SELECT /*+ REPARTITION_BY_RANGE(10, id) */ INT(id), INT(7 * id) FROM range(100)",
        "CREATE TABLE dim (k INT, g INT, n STRING) USING iceberg",
        "INSERT INTO dim VALUES (3, 1, 'a'), (50, 1, 'b'), (51, 2, 'c')",
    )


@pytest.fixture(scope="module")
def tells_snapshots(iceberg_server: PipelineServer) -> bool:
    """True if plans of the server tell snapshots: where they do not, nothing is read at one."""
    with closing(connect(iceberg_server.endpoint)) as session:
        return version_of(session) >= SNAPSHOTS_IN_PLANS[0]


@pytest.fixture(scope="module")
def snapshots_told(iceberg_server: PipelineServer) -> None:
    """Skips a test of statements at a snapshot where plans of the server tell none."""
    with closing(connect(iceberg_server.endpoint)) as session:
        needs(session, *SNAPSHOTS_IN_PLANS)


@pytest.mark.usefixtures("snapshots_told")
def test_keys_and_statement_name_the_current_snapshot(lake: Lake) -> None:
    with lake.proxied() as session:
        rows, text = lake.asked(session)
    ((current,),) = lake.directly(f"SELECT snapshot_id FROM lake.{DATABASE}.dim.refs")
    assert rows == WANTED
    assert f"{VERSION}{current} d ON" in text
    assert all(f"FROM {VERSION}{current} " in text for text in lake.texts(" AS key,"))


def interrupted(lake: Lake, moment: tuple[str, str], act: Callable[[], object]) -> list[Row]:
    """The answer to the statement, where something is done before a call that is made for it."""
    fault = Fault(First(act), *moment, times=1)
    with lake.proxied() as session, lake.middle.faulty(fault):
        lake.middle.calls.clear()
        rows = run(session, STATEMENT)
    assert fault.done
    return rows


@pytest.mark.usefixtures("snapshots_told")
@pytest.mark.parametrize("pattern", [KEY_QUERY, NARROWED])
def test_a_commit_while_a_statement_is_prepared_changes_nothing_about_its_answer(lake: Lake, pattern: str) -> None:
    assert interrupted(lake, ("ExecuteStatement", pattern), lambda: lake.directly(SWAP)) == WANTED
    assert lake.directly(STATEMENT) == SWAPPED


@pytest.mark.usefixtures("snapshots_told")
def test_a_snapshot_that_is_expired_before_the_statement_has_it_run_as_it_came(lake: Lake) -> None:
    expire = (
        f"CALL lake.system.expire_snapshots(table => '{DATABASE}.dim',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    assert interrupted(lake, ("ExecuteStatement", NARROWED), lambda: lake.directly(SWAP, expire)) == SWAPPED
    with lake.proxied() as session:
        rows, text = lake.asked(session)
    assert (rows, VERSION in text) == (SWAPPED, True)


def test_a_column_that_was_dropped_and_added_again_is_not_read_as_it_was(
    lake: Lake, *, tells_snapshots: bool
) -> None:
    """The version of the same name has the same columns, of the same types, and the values of the old one."""
    lake.directly("ALTER TABLE dim DROP COLUMN g", "ALTER TABLE dim ADD COLUMN g INT AFTER k")
    with lake.proxied() as session:
        rows, text = lake.asked(session)
        assert (rows, VERSION in text) == ([], False)
        why = UnpinnedReason.SCHEMA_CHANGED if tells_snapshots else UnpinnedReason.PLANS_TELL_NO_SCHEMA
        assert why.sentence in explained(session)
        # With the next snapshot name and version are one again.
        lake.directly("INSERT INTO dim VALUES (9, 1, 'd')")
        rows, text = lake.asked(session)
    assert (rows, VERSION in text) == ([(9, 63)], tells_snapshots)


def test_a_session_that_reads_a_branch_by_the_tables_name_reads_it_still(
    lake: Lake, *, tells_snapshots: bool
) -> None:
    lake.directly(
        "ALTER TABLE dim SET TBLPROPERTIES ('write.wap.enabled'='true')",
        "ALTER TABLE dim CREATE BRANCH audit",
        f"INSERT INTO lake.{DATABASE}.dim.branch_audit VALUES (9, 1, 'd')",
    )
    with lake.proxied() as session:
        run(session, "SET spark.wap.branch=audit")
        rows, text = lake.asked(session)
        assert rows == [WANTED[0], (9, 63), WANTED[1]]
        assert VERSION not in text
        why = UnpinnedReason.ON_A_BRANCH if tells_snapshots else UnpinnedReason.PLANS_TELL_NO_SCHEMA
        assert why.sentence in explained(session)
        run(session, "RESET spark.wap.branch")
        rows, text = lake.asked(session)
    assert (rows, VERSION in text) == (WANTED, tells_snapshots)


@pytest.mark.usefixtures("snapshots_told")
def test_keys_are_asked_once_for_a_snapshot_by_each_user(lake: Lake) -> None:
    with lake.proxied("ann") as ann, lake.proxied("bob") as bob:
        for session, has_asked in ((ann, True), (ann, False), (bob, True), (bob, False)):
            rows, _ = lake.asked(session)
            assert rows == WANTED
            assert bool(lake.texts(" AS key,")) is has_asked
        lake.directly(SWAP)
        rows, _ = lake.asked(ann)
        assert rows == SWAPPED
        assert lake.texts(" AS key,")


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("dim VERSION AS OF 'audit'", UnpinnedReason.VERSION_CAN_MOVE),
        (f"{DATABASE}.dim.branch_audit", UnpinnedReason.NOT_THE_TABLE),
        # A name of four parts is none of a table here, so that no keys are asked for.
        (f"lake.{DATABASE}.dim.branch_audit", SkipReason.NO_EQUALITY),
    ],
)
def test_a_branch_that_the_statement_names_is_what_it_reads(
    lake: Lake, reference: str, why: UnpinnedReason | SkipReason
) -> None:
    lake.directly("ALTER TABLE dim CREATE BRANCH audit", SWAP)
    sql = STATEMENT.replace("JOIN dim d", f"JOIN {reference} d")
    with lake.proxied() as session:
        assert run(session, sql) == lake.directly(sql) == WANTED
        assert why.sentence in explained(session, sql)
