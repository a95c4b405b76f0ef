"""Sockets, TLS and timeouts: asyncio code without knowledge of the protocol."""
