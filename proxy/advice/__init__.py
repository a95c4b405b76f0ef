"""Advice from the history: layouts of tables by which statements would read less, computed from their keys."""
