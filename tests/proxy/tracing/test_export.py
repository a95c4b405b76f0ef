"""Spans on their way to a collector: they arrive, and nothing waits for one that is away."""

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from click.testing import CliRunner
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from support.histories import record, until
from support.otlp_receiver import Receiver, attributes, otlp_receiver
from support.played_sessions import DESCRIBE, KEYS, SQL, played

from proxy.cli import main
from proxy.config.config import Config
from proxy.config.serving import HistorySection, TracingSection
from proxy.history.history import History
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import SessionOpening
from proxy.session.session import Session
from proxy.session.shared_state import SharedState
from proxy.session.timings import AskedQuery
from proxy.statements.statement_class import StatementClass
from proxy.tracing import export as export_module
from proxy.tracing import otlp
from proxy.tracing.export import SpanExport, span_export
from proxy.tracing.spans import trace_id_of

# A call that waits for a request takes as long; one that does not is quicker, also on a busy machine.
REQUEST_S = 60.0
QUICK_S = 20.0


@pytest.fixture(autouse=True)
def _requests_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "REQUEST_S", REQUEST_S)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with otlp_receiver() as one:
        yield one


@pytest.fixture
def nobody() -> str:
    """The address of a collector that is away."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1/traces"


def config(endpoint: str) -> Config:
    return Config(tracing=TracingSection(endpoint=endpoint))


def ids(span: Span) -> tuple[bytes, bytes, bytes]:
    return span.trace_id, span.span_id, span.parent_span_id


def test_the_spans_of_a_statement_arrive_as_one_trace(receiver: Receiver) -> None:
    at = 1_800_000_000.0
    asked = [AskedQuery("descriptions", 0.002, 0.01), AskedQuery("keys", 0.015, 0.072)]
    one = record(at=at, asked=asked, outcome="fallback", end="recovered", fallback_s=2.5, backend="[::1]:10000")
    with span_export(config(receiver.url)) as export:
        export.statement_ended(one)
    whole, deciding = receiver.named("SELECT sales"), receiver.named("deciding")
    run, fallback, keys = (receiver.named(name) for name in ("run", "fallback", "key query"))
    assert len(receiver.spans) == 6
    assert {span.trace_id for span in receiver.spans} == {trace_id_of(one.id).to_bytes(16, "big")}
    assert whole.trace_id.hex().startswith(one.id)
    assert whole.parent_span_id == b""
    assert deciding.parent_span_id == run.parent_span_id == fallback.parent_span_id == whole.span_id
    assert keys.parent_span_id == deciding.span_id
    assert whole.kind == Span.SPAN_KIND_SERVER
    assert run.kind == fallback.kind == keys.kind == Span.SPAN_KIND_CLIENT
    assert deciding.kind == Span.SPAN_KIND_INTERNAL
    assert run.status.code == Status.STATUS_CODE_ERROR
    assert fallback.status.code == whole.status.code == Status.STATUS_CODE_UNSET
    assert attributes(run.attributes)["error.type"] == "recovered"
    assert abs(whole.start_time_unix_nano - at * 1e9) < 1e6
    assert whole.end_time_unix_nano == fallback.end_time_unix_nano
    about = attributes(whole.attributes)
    assert about["starpruner.statement.id"] == one.id
    assert (about["server.address"], about["server.port"]) == ("::1", 10_000)
    assert about["starpruner.rules"] == ["inner_join"]
    (service,) = receiver.services
    assert service["service.name"] == "starpruner"
    assert "service.version" in service


def test_a_statement_of_a_session_arrives_with_the_id_of_the_history(receiver: Receiver) -> None:
    with span_export(config(receiver.url)) as export:
        history = History(HistorySection(), None, on_end=export.statement_ended)
        shared = SharedState.of(Config())
        session = Session(shared, SessionOpening({}, "owner", "ann", "10.0.0.1", "spark-1:10000"), history)
        dispatch = played(session.rewrite(StatementClass(SQL)), [*DESCRIBE, KEYS])
        dispatch.on_operation("5f0c0a52-1111-4222-8333-0123456789ab")
        (running,) = history.state().running
        assert running.spark_ids == ["5f0c0a52-1111-4222-8333-0123456789ab"]
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 1.5))
    about = attributes(receiver.named("SELECT d f").attributes)
    assert about["starpruner.statement.id"] == dispatch.statement_id == running.id
    assert about["server.address"] == "spark-1"
    names = [span.name for span in receiver.spans]
    assert names.count("description") >= len(DESCRIBE)
    assert names.count("key query") == names.count("run") == 1


def test_a_client_that_names_its_span_in_a_comment_finds_the_statement_below_it(receiver: Receiver) -> None:
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with span_export(config(receiver.url)) as export:
        export.statement_ended(record(original=f"SELECT 1 /*traceparent='00-{trace}-{span}-01'*/", scans=[]))
        export.statement_ended(record(original=f"SELECT 2 /*traceparent='00-{trace}-{span}-00'*/", scans=[]))
    whole = receiver.named("SELECT")
    assert (whole.trace_id.hex(), whole.parent_span_id.hex()) == (trace, span)


def test_many_statements_go_in_few_requests(receiver: Receiver) -> None:
    with span_export(config(receiver.url)) as export:
        for _ in range(250):
            export.statement_ended(record())
    assert sum(span.name == "SELECT sales" for span in receiver.spans) == 250
    assert len(receiver.services) < 10
    assert export.lost() == 0


def test_headers_come_from_the_variables_of_opentelemetry(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    with span_export(config(receiver.url)) as export:
        export.statement_ended(record())
    assert receiver.headers[0]["authorization"] == "Bearer abc"


def test_a_collector_that_is_away_costs_nothing_but_spans(nobody: str, caplog: pytest.LogCaptureFixture) -> None:
    with span_export(config(nobody)) as export:
        began = time.monotonic()
        for _ in range(20):
            export.statement_ended(record())
        assert time.monotonic() - began < QUICK_S
        began = time.monotonic()
    assert time.monotonic() - began < export_module.CLOSE_S + QUICK_S
    until(lambda: export.lost() == 20)
    assert all(one.levelno >= logging.ERROR for one in caplog.records if one.name.startswith("opentelemetry"))
    assert sum(one.name.startswith("opentelemetry") for one in caplog.records) <= 1


def test_a_collector_that_does_not_answer_fills_the_queue_and_no_more(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_module, "EXPORT_EVERY_S", 0.01)
    monkeypatch.setattr(export_module, "QUEUED_MAX", 10)
    receiver.answers.clear()
    with span_export(config(receiver.url)) as export:
        began = time.monotonic()
        for _ in range(export_module.BATCH_MAX * 3):
            export.statement_ended(record())
        assert time.monotonic() - began < QUICK_S
        assert export.lost() > 0
        receiver.answers.set()
    arrived = sum(span.name == "SELECT sales" for span in receiver.spans)
    assert arrived + export.lost() == export_module.BATCH_MAX * 3


def test_characters_that_wait_are_bounded_as_well(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    monkeypatch.setattr(export_module, "QUEUED_CHARS_MAX", 10_000)
    with span_export(config(receiver.url)) as export:
        export.statement_ended(record(original="x" * 20_000))
    assert export.lost() == 1


def test_without_an_endpoint_nothing_is_kept_or_started() -> None:
    with span_export(config("")) as export:
        export.statement_ended(record())
    assert export.lost() == 0


def test_an_error_in_one_batch_loses_that_batch_alone() -> None:
    class Broken:
        """Cannot make the spans of the first batch."""

        batches = 0

        def add(self, *_: object) -> None:
            self.batches += 1
            if self.batches == 1:
                raise ValueError("SELECT 'secret'")

        def send(self) -> bool:
            return True

        def close(self) -> None:
            return

    export = SpanExport(Broken())
    export.statement_ended(record())
    export.start()
    until(lambda: export.lost() == 1)
    export.statement_ended(record())
    export.close()
    assert export.lost() == 1


def test_the_section_without_the_extra_is_an_error_that_names_it(
    nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "proxy.tracing.otlp", raising=False)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.")]:
        monkeypatch.delitem(sys.modules, name)
    found = CliRunner().invoke(main, ["serve", "--check", "--set", f"tracing.endpoint={nobody}"])
    assert found.exit_code != 0
    assert "pip install '.[tracing]'" in found.output


def test_a_proxy_without_tracing_loads_none_of_it() -> None:
    code = "import sys, proxy.cli; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
