"""The proxy in front of Spark Thrift Server: the wire, the relay, the sessions, the admin port."""
