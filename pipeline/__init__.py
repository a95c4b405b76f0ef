"""PySpark jobs that write tables so that files can be skipped, and the file index by which they are skipped."""
