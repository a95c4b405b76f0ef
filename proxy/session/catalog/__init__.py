"""Tables and settings as Spark tells of them: parsed, and cached for each state of a session."""
