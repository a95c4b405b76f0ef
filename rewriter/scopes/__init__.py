"""The meaning of names in a statement: FROM clauses, joins, blocks, CTEs, lineage of columns."""
