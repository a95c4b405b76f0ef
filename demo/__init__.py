"""An embedded Spark Thrift Server, a sample star schema, and the same queries with and without the proxy."""
