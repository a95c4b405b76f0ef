"""Where rows lie: lists of partitions and of files, cached for each user."""
