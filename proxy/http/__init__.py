"""HiveServer2 over HTTP on either side: one unframed message in a POST, its reply in the answer's body."""
