"""The ordered index of a table's partitions, and range scans of it."""
