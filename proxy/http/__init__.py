"""HiveServer2 for clients over HTTP: one unframed message in a POST, its reply in the answer's body."""
