"""What the user sets, checked at start."""
