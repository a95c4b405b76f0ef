"""Kerberos: logins of clients and at backends by SASL GSSAPI, name rules, and wrapped frames. No sockets."""
