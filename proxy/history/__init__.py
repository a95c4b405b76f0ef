"""History of statements: what was decided, how each ended, and what it spared; kept beside the statements' way."""
