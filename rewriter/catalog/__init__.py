"""Facts known of a table, and the test if the table can be narrowed at all."""
