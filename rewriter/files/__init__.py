"""Bounds of a table's files, and hints that name files."""
