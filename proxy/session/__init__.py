"""Decides about the statements of one client session: generators, no sockets."""
