"""Bounds of a table's files, hints that name files, and splits."""
