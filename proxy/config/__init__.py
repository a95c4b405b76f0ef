"""The user's settings, checked at start."""
