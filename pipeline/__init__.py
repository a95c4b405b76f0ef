"""PySpark jobs that lay tables out so that files can be skipped, and the index that says which."""
