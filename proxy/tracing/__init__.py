"""Tracing: OpenTelemetry spans of each statement, made of its record and exported beside the statements' way."""
