"""Thrift's strict binary protocol, sans-I/O: it knows nothing of HiveServer2."""
