"""Errors of HBase's Thrift gateway."""

from __future__ import annotations


class HBaseError(Exception):
    """A call that failed: the gateway is away, too slow or broken, or HBase refuses what it was asked."""


class TableExistsError(HBaseError):
    """The table that was to be made is there already."""
