"""Merges a table's small files."""
