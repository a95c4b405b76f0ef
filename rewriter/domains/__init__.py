"""The algebra of keys: literals, positions, domains, covers, key sets, and how covers are widened."""
