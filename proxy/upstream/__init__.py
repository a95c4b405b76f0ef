"""The proxy's own connections to a backend, over the binary protocol or HTTP. Shell."""
