"""Lists of partitions and of files: where rows lie, cached for each user."""
