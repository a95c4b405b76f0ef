"""A table's catalog entry, its directories, its lock, and the publication of new files."""
