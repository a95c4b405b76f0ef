"""HiveServer2's wire protocol without I/O: bytes in, values out. Imports nothing but the standard library."""
