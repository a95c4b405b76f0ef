"""Exchanges a partition's files while others read it, and completes exchanges that were cut short."""
