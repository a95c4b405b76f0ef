"""Sender of spans by OTLP over HTTP, with OpenTelemetry's SDK: the extra starpruner[tracing].

Headers, certificates, samplers and further resource attributes are those of the SDK's environment variables.
"""

from __future__ import annotations

import logging
import math
import time
from importlib.metadata import version
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as SdkSpan

from proxy.tracing.spans import SpanOfStatement, TraceParent

# A request is given up after this, its repetitions included.
REQUEST_S: Final = 10.0
# Errors of a collector that is away are logged once in this time.
_LOG_EVERY_S: Final = 60.0
_NS: Final = 1_000_000_000


class OtlpSender:
    """See SpanSender. Spans are made and kept in memory until they are sent together."""

    def __init__(self, endpoint: str, service_name: str) -> None:
        resource = Resource.create({"service.name": service_name, "service.version": version("starpruner")})
        self._ids = _StatementIds()
        self._made = InMemorySpanExporter()
        provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._made))
        self._tracer = provider.get_tracer("starpruner")
        self._exporter = OTLPSpanExporter(endpoint, timeout=REQUEST_S)
        _log_seldom(logging.getLogger(OTLPSpanExporter.__module__))

    def add(self, span: SpanOfStatement, trace_id: int, parent: TraceParent | None) -> None:
        """See SpanSender."""
        self._ids.trace_id = trace_id
        self._add(span, None if parent is None else _remote(parent))

    def send(self) -> bool:
        """See SpanSender."""
        spans = self._made.get_finished_spans()
        self._made.clear()
        # There are none if a sampler left all of them out.
        return not spans or self._exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """See SpanSender."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _add(self, span: SpanOfStatement, parent: SdkSpan | None) -> None:
        context = None if parent is None else set_span_in_context(parent)
        attributes = {**span.attributes, **({"error.type": span.error} if span.error else {})}
        kind = SpanKind[span.kind.upper()]
        made = self._tracer.start_span(span.name, context, kind, attributes, start_time=int(span.start * _NS))
        for child in span.children:
            self._add(child, made)
        if span.error:
            made.set_status(Status(StatusCode.ERROR))
        made.end(int(span.end * _NS))


class _StatementIds(RandomIdGenerator):
    """Gives a trace the id that was set last. Used by one thread."""

    trace_id = 0

    def generate_trace_id(self) -> int:
        """Return the id of the trace that begins."""
        return self.trace_id

    def is_trace_id_random(self) -> bool:
        """Return False: it begins with a time."""
        return False


def _remote(parent: TraceParent) -> SdkSpan:
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    return NonRecordingSpan(SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=flags))


def _log_seldom(logger: logging.Logger) -> None:
    """Let one error through in a while, and no warning: the exporter has one for each try."""
    next_at = -math.inf

    def passes(_: logging.LogRecord) -> bool:
        nonlocal next_at
        now = time.monotonic()
        if now < next_at:
            return False
        next_at = now + _LOG_EVERY_S
        return True

    logger.setLevel(logging.ERROR)
    logger.filters = [passes]
