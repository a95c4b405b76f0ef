"""Tests that start Spark, another server in Java, a container, a browser or a KDC, which takes seconds or more.

A test is such a one by its fixtures and its own text: by the functions that they call, and those that these call,
as far as they stand in tests/ or demo/. Example: a test asks for the fixture `proxied`, that for `proxy`, that for
`spark`, and that calls `find_java`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import pytest

from support.source_tree import ROOT

# By the names of functions that lead to such a program, or of the program in a text.
_STARTS: Final = frozenset({"find_java", "launch_command", "SparkSession"})
_STARTED: Final = frozenset(
    {
        "playwright.async_api",
        "dockerd",
        "docker",
        "tools.release",
        "krb5kdc",
        "slapd",
        "mvn",
        "mmdebstrap",
        "haproxy",
        "prometheus",
    }
)
# Commands of starpruner that start Spark.
_WITH_SPARK: Final = frozenset({"demo", "sts"})


def functions_of(item: pytest.Item) -> Iterator[tuple[str, FunctionType]]:
    """A test's function and its fixtures', each with the path of the file that it stands in."""
    if not isinstance(item, pytest.Function):
        return
    definitions = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 - pytest has no other way to ask
    # The last definition of a name is the one in force; it may ask for the one before.
    fixtures = (one.func for found in definitions.values() for one in found)
    for function in (item.function, *fixtures):
        plain = _plain(function)
        if plain is not None:
            path = _path_of(plain)
            if path is not None:
                yield path, plain


def is_heavy(item: pytest.Item) -> bool:
    """True if a test starts such a program, or uses one that a fixture has started."""
    return any(starts_something(function) for _, function in functions_of(item))


@cache
def starts_something(function: FunctionType) -> bool:
    """True if a function starts such a program, perhaps by functions that it calls."""
    for one in _called(function, lambda _: True):
        names, texts = _names_in(one.__code__)
        is_demo = "starpruner_command" in names and not _WITH_SPARK.isdisjoint(texts)
        if is_demo or not _STARTS.isdisjoint(names) or not _STARTED.isdisjoint(texts):
            return True
    return False


@cache
def files_used_by(function: FunctionType) -> frozenset[str]:
    """The paths of the modules that a function uses, perhaps by other functions of its own module."""
    found: set[str] = set()
    for one in _called(function, lambda other: other.__module__ == function.__module__):
        names, _ = _names_in(one.__code__)
        for value in _values(one, names):
            path = _path_of(value)
            if path is not None:
                found.add(path)
    return frozenset(found)


def _called(function: FunctionType, is_followed: Any) -> list[FunctionType]:
    """A function with those of ours that it calls, and that these call."""
    seen, waiting = {function}, [function]
    while waiting:
        one = waiting.pop()
        names, _ = _names_in(one.__code__)
        for value in _values(one, names):
            members = vars(value).values() if inspect.isclass(value) and _path_of(value) is not None else (value,)
            for member in members:
                called = _plain(member)
                if called is None or called in seen or _path_of(called) is None:
                    continue
                if is_followed(called):
                    seen.add(called)
                    waiting.append(called)
    return list(seen)


def _values(function: FunctionType, names: set[str]) -> Iterator[Any]:
    """The values of names of a function's module, and of names in modules that it names."""
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield value
        if isinstance(value, ModuleType) and _relative(getattr(value, "__file__", None)) is not None:
            yield from (vars(value)[inner] for inner in names & vars(value).keys())


def _names_in(code: CodeType) -> tuple[set[str], set[str]]:
    """The names and the short texts in a function, those of functions within it included."""
    names, texts = set(code.co_names), set()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner, quoted = _names_in(constant)
            names |= inner
            texts |= quoted
        elif isinstance(constant, str):
            texts.add(constant)
        elif isinstance(constant, tuple):
            texts.update(part for part in constant if isinstance(part, str))
    return names, texts


def _plain(value: Any) -> FunctionType | None:
    """The function behind a decorated one, a method or a fixture."""
    value = getattr(value, "__func__", value)
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, property):
        value = value.fget
    return value if isinstance(value, FunctionType) else None


def _path_of(value: Any) -> str | None:
    """The path of the file in which a value is defined; a module's own."""
    module = inspect.getmodule(value)
    return None if module is None else _relative(getattr(module, "__file__", None))


@cache
def _relative(path: str | None) -> str | None:
    """The path below the checkout of a file in tests/ or demo/; None for any other one."""
    if path is None or not Path(path).is_relative_to(ROOT):
        return None
    found = Path(path).relative_to(ROOT).as_posix()
    return found if found.startswith(("tests/", "demo/")) else None
