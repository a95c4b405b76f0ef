"""The HTTP port beside the proxy."""
