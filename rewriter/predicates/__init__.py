"""Conditions that are inserted into a scan, and their insertion into the client's text."""
