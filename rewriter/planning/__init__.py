"""Planning of a statement: all its scans, the tables of its views, snapshots, and rules that are off."""
