"""Structs of TCLIService, HiveServer2's Thrift service, that the proxy reads or writes."""
