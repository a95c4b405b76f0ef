"""Exchanges a partition's files under readers, and recovers from an exchange that was cut short."""
