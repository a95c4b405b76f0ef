"""Shadow mode: compares the answers of the original and the rewritten text."""
