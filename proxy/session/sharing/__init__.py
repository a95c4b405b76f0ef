"""Lessons that replicas share in HBase: what is quarantined, and the runs of statements."""
