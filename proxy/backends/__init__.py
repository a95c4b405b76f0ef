"""Several backends as one: which of them a new session goes to, how each one is, and how clients find us."""
