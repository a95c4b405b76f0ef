"""Compaction: merges a table's small files."""
