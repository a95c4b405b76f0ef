"""Statements by their text alone: their class, the tables that they may write, what they may do to a session."""
