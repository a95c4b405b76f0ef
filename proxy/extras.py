"""Extras of the distribution, which is on no package index: the words for a user who lacks one."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The commands that install an extra, from a checkout or from a wheel.

    >>> how_to_install("demo")
    "install the extra demo: pip install '.[demo]' in a checkout, or pip install 'PATH/TO/WHEEL.whl[demo]'"
    """
    checkout, wheel = f"'.[{extra}]'", f"'PATH/TO/WHEEL.whl[{extra}]'"
    return f"install the extra {extra}: pip install {checkout} in a checkout, or pip install {wheel}"
