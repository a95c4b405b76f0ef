"""Several worker processes on one port, their supervisor, and the state that they share."""
