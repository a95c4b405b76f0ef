"""Tables and settings as Spark describes them: parsed, and cached for each state of a session."""
