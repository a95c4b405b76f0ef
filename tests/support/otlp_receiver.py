"""A collector of OpenTelemetry for tests: takes OTLP over HTTP and decodes the real messages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver:
    """The spans that came, and the attributes of the service that sent them."""

    url: str
    spans: list[Span] = field(default_factory=list)
    services: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    # Answers are held back until it is set.
    answers: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> Span:
        """The only span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        """One request."""
        request = ExportTraceServiceRequest.FromString(body)
        self.headers.append(headers)
        for resource in request.resource_spans:
            self.services.append(attributes(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.spans += scope.spans


def attributes(pairs: Any) -> dict[str, Any]:
    """The attributes of a span as plain values."""
    return {pair.key: _plain(pair.value) for pair in pairs if isinstance(pair, KeyValue)}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(one) for one in value.array_value.values]
    return getattr(value, kind) if kind is not None else None


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """A collector on a free port, which answers at once."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.answers.wait(60)
            receiver.take(body, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}/v1/traces")
    receiver.answers.set()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.answers.set()
        server.shutdown()
        server.server_close()
        thread.join()
