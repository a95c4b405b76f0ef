"""Connections of the proxy's own to a backend, over the binary protocol or HTTP. Shell."""
