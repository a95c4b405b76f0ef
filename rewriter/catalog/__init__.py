"""Facts known of a table, and whether the table can be narrowed at all."""
