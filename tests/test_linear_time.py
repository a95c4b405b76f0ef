"""Whatever looks at a client's text takes time in proportion to its length, however it was made up.

A pattern holds the interpreter until it has ended, and all clients wait. Every pattern of a module is looked for,
so that a new one is tried without being named here.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest
from support.source_tree import ROOT, SourceTree
from support.worst_texts import FRAGMENTS, filled, seconds, texts_for

import proxy.cli  # noqa: F401 - it reaches all modules, as the stamp of this one must
from proxy.history.redaction import kept_text
from proxy.statements.statement_class import StatementClass

pytestmark = pytest.mark.costly

Work: TypeAlias = Callable[[int], Callable[[], object]]

METHODS = {"search", "match", "fullmatch", "finditer", "findall", "sub", "split"}
# Patterns are made of texts in these alone: of the configuration's, and of a short LIKE's without its signs.
MADE_LATER = {"proxy.kerberos.name_rules", "rewriter.partitions.like"}
# A few characters show what is exponential, some hundred what is cubic. The last takes what is linear half a
# millisecond, and what is quadratic a third of a second.
LENGTHS = (8, 12, 18, 27, 40, 600, 8_000)
TOO_LONG_S = 0.01
# A function may take a microsecond for each character.
LENGTHS_OF_FUNCTIONS = (40, 3_000)
FUNCTION_TOO_LONG_S = 0.05
# Of the text that took longest: in steps, so that what is quadratic is found by one that takes seconds.
LONGER = (32_000, 128_000, 1_000_000)
# Of these texts, what is linear takes a tenth of a microsecond for each character. A hundred times as long is too
# long however it grows: to look at its growth would take minutes.
CHARACTER_TOO_LONG_S = 1e-5
# Twice as long a text takes twice as long, and four times where it is quadratic. From some length on, memory costs
# more, which is one step: so a text is slow where its time grows too fast twice.
GROWTH_MAX = 3.0
# Whatever else runs takes the caches for a moment. A slow text is slow each time.
LOOKS = 3

# Modules that are given a client's text, of which each function that takes one text alone is tried.
OF_TEXTS = (
    "rewriter.sql.classify",
    "proxy.statements",
    "proxy.session.feedback",
    "proxy.history.record",
    "proxy.session.explain.text",
    "proxy.session.explain.summary",
    "proxy.session.shadow.order_dependence",
)
BEGINNINGS = ("", "select ", "insert into t ", "create table t ", "/* */ set x=")


@cache
def _modules() -> tuple[ModuleType, ...]:
    found = []
    for root in ("rewriter", "proxy"):
        package = importlib.import_module(root)
        names = [one.name for one in pkgutil.walk_packages(package.__path__, f"{root}.")]
        found += [package, *(importlib.import_module(name) for name in names if not name.endswith("__main__"))]
    return tuple(found)


@cache
def _calls() -> dict[tuple[str, str], frozenset[str]]:
    """The methods by which patterns are applied, by the module and the pattern's name."""
    found: dict[tuple[str, str], set[str]] = {}
    for module in _modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
                name = node.value.id
                found.setdefault((module.__name__ if name.startswith("_") else "", name), set()).add(node.attr)
    return {key: frozenset(methods) for key, methods in found.items()}


def _patterns() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """Each pattern with its name, and each way in which it is applied."""
    for module in _modules():
        for name, value in vars(module).items():
            held = (
                value.values()
                if isinstance(value, dict)
                else value
                if isinstance(value, (tuple, list))
                else [value]
            )
            key = module.__name__ if name.startswith("_") else "", name
            for pattern in held:
                if isinstance(pattern, re.Pattern):
                    # Where nobody says, any may be meant.
                    for method in sorted(_calls().get(key, frozenset({"finditer", "match", "fullmatch"}))):
                        yield f"{module.__name__}.{name}", pattern, method


# A pattern that several modules use is tried once, by the name where it is made.
PATTERNS: dict[tuple[Any, int, str], tuple[str, re.Pattern[Any]]] = {}
for _name, _pattern, _method in _patterns():
    _ = PATTERNS.setdefault((_pattern.pattern, _pattern.flags, _method), (_name, _pattern))


def _applied(pattern: re.Pattern[Any], method: str, text: str) -> None:
    given = text.encode() if isinstance(pattern.pattern, bytes) else text
    if method in {"search", "match", "fullmatch"}:
        getattr(pattern, method)(given)
    else:
        deque(pattern.finditer(given), maxlen=0)


def _time_of(work: Work, chars: int, too_long_s: float) -> tuple[float, bool]:
    """The time for so many characters, and whether it is too long, or grows out of proportion in each look."""
    once = seconds(work(chars))
    if chars in LONGER and once > CHARACTER_TOO_LONG_S * chars:
        return once, True
    return once, once >= too_long_s and all(_grows(work, chars) for _ in range(LOOKS))


def _grows(work: Work, chars: int) -> bool:
    """True if the time grows out of proportion from a quarter to half of the characters, and from half to all."""
    quarter, half = seconds(work(chars // 4), 3), seconds(work(chars // 2), 3)
    return half > GROWTH_MAX * quarter and seconds(work(chars), 2) > GROWTH_MAX * half


def _check(
    text: tuple[str, str], lengths: Iterable[int], applied: Callable[[str], object], too_long_s: float = TOO_LONG_S
) -> float:
    """Try it with texts of these lengths, the shortest first. Returns the time for the longest."""
    taken = 0.0
    for chars in lengths:
        taken, is_slow = _time_of(lambda of: partial(applied, filled(*text, of)), chars, too_long_s)
        assert not is_slow, f"{chars} characters: {text[0]!r}, then {text[1]!r} many times"
    return taken


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(pattern, method) for (*_, method), (_, pattern) in PATTERNS.items()],
    ids=[f"{name}-{method}" for (*_, method), (name, _) in PATTERNS.items()],
)
def test_a_pattern_takes_time_in_proportion_to_the_text(pattern: re.Pattern[Any], method: str) -> None:
    applied = partial(_applied, pattern, method)
    texts = list(texts_for(pattern))
    taken = {text: _check(text, LENGTHS, applied) for text in texts}
    _ = _check(max(texts, key=taken.__getitem__), LONGER, applied)


def _functions() -> Iterator[tuple[str, Callable[[str], object]]]:
    for module in _modules():
        if not module.__name__.startswith(OF_TEXTS):
            continue
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                parameters = list(inspect.signature(value).parameters.values())
                needed = [one.annotation for one in parameters if one.default is one.empty]
                if needed == ["str"]:
                    yield f"{module.__name__}.{name}", value
    for name, value in vars(StatementClass).items():
        if isinstance(value, (property, cached_property)):
            yield f"StatementClass.{name}", partial(_property, name)
    for literals in (True, False):
        yield f"kept_text-{literals}", partial(kept_text, literals=literals)


def _property(name: str, text: str) -> object:
    return getattr(StatementClass(text), name)


FUNCTIONS = dict(_functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_time_in_proportion_to_the_text(name: str) -> None:
    for text in product(BEGINNINGS, FRAGMENTS):
        _ = _check(text, LENGTHS_OF_FUNCTIONS, FUNCTIONS[name], FUNCTION_TOO_LONG_S)


def test_the_known_ones_are_among_them() -> None:
    names = {name for name, _ in PATTERNS.values()}
    assert {"rewriter.sql.classify._READ", "proxy.statements.literals.TOKEN"} <= names
    assert len(names) > 100
    assert {
        "StatementClass.written",
        "rewriter.sql.classify.names_read",
        "proxy.statements.ddl_items.ddl_items",
    } <= {*FUNCTIONS}


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?:secret|token)[\w.]*+'", "finditer"),
        (r"(array|map)<.*struct<", "search"),
        (r"([\w`]+)\.", "finditer"),
        (r"/\*.*?\*/", "finditer"),
        (r"USE\s+(\w+)\s*;?\s*", "fullmatch"),
        (r"(a+)+b", "match"),
        (r"(?:a|a)*c", "match"),
        (r"(\s*,?\s*\w*)+;", "search"),
    ],
)
def test_a_pattern_that_takes_longer_is_found(pattern: str, method: str) -> None:
    with pytest.raises(AssertionError, match="characters"):
        test_a_pattern_takes_time_in_proportion_to_the_text(re.compile(pattern, re.DOTALL), method)


def test_a_slow_pattern_is_found_by_its_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}._grows", lambda *_: False)
    with pytest.raises(AssertionError, match=r"^32000 characters"):
        test_a_pattern_takes_time_in_proportion_to_the_text(re.compile(r"/\*.*?\*/", re.DOTALL), "finditer")


@pytest.mark.parametrize("module", [module for module in _modules() if module.__name__ not in MADE_LATER], ids=str)
def test_patterns_are_made_as_a_module_is_read(module: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(module))
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    calls = [
        f"{module.__name__}:{node.lineno}"
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        if node.func.attr in METHODS | {"compile"}
    ]
    assert not calls


def test_its_stamp_depends_on_all_modules() -> None:
    tree = SourceTree.read()
    assert tree is not None
    files = {str(Path(inspect.getfile(module)).relative_to(ROOT)) for module in _modules()}
    assert files <= tree.inputs_of(["tests/test_linear_time.py"])
