"""Semi-joins: the reducers of a fact scan, and the queries for their keys."""
