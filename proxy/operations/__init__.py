"""Statements and their operations on the backend, whatever the transport. No I/O."""
