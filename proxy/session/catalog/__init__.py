"""What Spark tells of tables and settings, parsed, and cached for each state of a session."""
