"""Builds the file index: bounds of a table's files, read from footers or by a query."""
