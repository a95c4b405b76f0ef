"""Limits on what a statement may read, for users and tables."""
