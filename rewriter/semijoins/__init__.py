"""Finds the reducers of a fact scan, and writes the queries for their keys."""
