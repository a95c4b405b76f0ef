"""Fewer splits for scans of small files: the proofs that no result shows the change, and the numbers."""
