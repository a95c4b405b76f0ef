"""Changes between two reads: writes, and the state of a session."""
