"""Several processes on one port, and what they have to know of one another."""
