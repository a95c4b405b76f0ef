"""The error of a configuration that the proxy does not start with."""

from __future__ import annotations


class ConfigError(ValueError):
    """A configuration that the proxy does not start with. The message names the key and what is wrong."""
