"""Addresses that a visitor is led to after signing in: pages of the port, and nothing else. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import quote, urlsplit

# Characters that a query keeps. All others are written as %XX, so the address cannot end early.
_QUERY_SAFE: Final = "%&=+/:?@!$'()*,;~"


def return_path(wanted: str, pages: Collection[str]) -> str:
    """The path and the query of one of these pages; "/" for every other address.

    `{id}` in a page's path stands for any identifier. Raises ValueError for a character that no address has, such
    as the end of a line, or a tab, which browsers skip.

    >>> pages = ["/", "/history", "/history/{id}"]
    >>> [return_path(wanted, pages) for wanted in ("/history?user=a b", "//evil.example/history", "/%2f/evil")]
    ['/history?user=a%20b', '/', '/']
    """
    if not wanted.isprintable():
        raise ValueError("the address to go on to has a character that no address has")
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return "/"
    if parts.scheme or parts.netloc or not any(_is_page(parts.path, page) for page in pages):
        return "/"
    query = quote(parts.query, safe=_QUERY_SAFE)
    return f"{parts.path}?{query}" if query else parts.path


def _is_page(path: str, page: str) -> bool:
    before, placeholder, _ = page.partition("{id}")
    if not placeholder:
        return path == page
    identifier = path.removeprefix(before)
    return identifier != path and identifier.isascii() and identifier.isalnum()
