"""Finds all scans of a statement, follows its views, and pins its tables to snapshots."""
