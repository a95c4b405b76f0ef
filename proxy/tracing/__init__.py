"""Tracing: OpenTelemetry spans of each statement, made of its record; no statement waits for their export."""
