"""What earlier runs of statements taught: the cost gate, the quarantine, limits of the metastore."""
