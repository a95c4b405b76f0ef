"""Fewer splits for scans of small files: the proofs that a result shows none of it, and the numbers."""
