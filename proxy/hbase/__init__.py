"""A client of HBase's Thrift gateway (Thrift 1): rows of one table, with deadlines, in threads of its own."""
