"""Decides about the statements of one client session: async code, no sockets."""
