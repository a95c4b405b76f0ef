"""Lessons of earlier runs: the cost gate, the quarantine, limits of the metastore."""
