"""Loads a table with files of their own for skewed values."""
