"""A decision as users see it."""
