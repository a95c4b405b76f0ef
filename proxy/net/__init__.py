"""Sockets, TLS and timeouts: asyncio's plumbing without knowledge of the protocol."""
