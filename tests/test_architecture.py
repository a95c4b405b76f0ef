"""The directions of imports, and what the pure parts may not touch.

A test goes over all modules and names each one that breaks its rule. A test for each module, 1,600 in all, took
four times the processor time.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("rewriter", "proxy", "pipeline", "demo")

# What each package may import of the others. Arrows run one way.
ALLOWED = {"rewriter": set(), "proxy": {"rewriter"}, "pipeline": {"rewriter"}, "demo": {"proxy", "rewriter"}}

# The shell, and the only modules and packages that know of sockets and of the event loop.
SHELL = {
    "proxy.bootstrap",
    "proxy.cli",
    "proxy.server",
    "proxy.off_switch",
    "proxy.stopping",
    "proxy.net",
    "proxy.upstream",
    "proxy.hbase",
    "proxy.frontend",
    "proxy.http",
    "proxy.admin",
    "proxy.terminal",
    "proxy.workers.listening_ports",
    "proxy.workers.process_role",
    "proxy.workers.metrics_exchange",
    "proxy.history.history",
    "proxy.history.recent_savings",
    "proxy.history.replicas",
    "proxy.tracing.export",
    "proxy.backends.dns",
    "proxy.backends.health_checks",
    "proxy.backends.maintenance",
    "proxy.backends.assembly",
    "proxy.backends.zookeeper",
    "pipeline.index.footers",
}
# Modules of these packages that know nothing of them all the same.
PURE = {
    "proxy.hbase.calls",
    "proxy.http.exchange",
    "proxy.http.routing",
    "proxy.upstream.http_cookies",
    "proxy.upstream.http_headers",
}
INPUT_AND_OUTPUT = {
    "asyncio",
    "socket",
    "ssl",
    "select",
    "threading",
    "subprocess",
    "aiohttp",
    "uvloop",
    "concurrent",
}

# Two threads at once use objects of this package: it has locks, and nothing else of threads.
LOCKED = "proxy.session"

# Lower packages first: a module imports of its own tree only packages that stand before its own, and its own one.
# `plan`, `rewrite`, `extras`, `kept_files`, `off_switch`, `stopping`, `server`, `bootstrap` and `cli` are modules
# by themselves. A package in a package has a place of its own.
ORDER = {
    "rewriter": (
        "vocabulary",
        "sql",
        "domains",
        "catalog",
        "partitions",
        "files",
        "scopes",
        "semijoins",
        "predicates",
        "splits",
        "planning",
        "plan",
        "rewrite",
    ),
    "pipeline": (
        "spark",
        "tables",
        "index",
        "swap",
        "load",
        "compaction",
        "commands",
        "cli",
    ),
    "proxy": (
        "wire.thrift",
        "wire.hs2",
        "wire",
        "extras",
        "kerberos",
        "config",
        "kept_files",
        "off_switch",
        "net",
        "access",
        "limits",
        "statements",
        "operations",
        "relay",
        "upstream",
        "session.consistency",
        "session.feedback",
        "backends",
        "hbase",
        "session.catalog",
        "session.layout",
        "session.sharing",
        "session.shadow",
        "session",
        "session.explain",
        "history",
        "advice",
        "tracing",
        "frontend",
        "http",
        "stopping",
        "workers",
        "admin",
        "terminal",
        "server",
        "bootstrap",
        "cli",
    ),
}


def modules(package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__"), path


@cache
def import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def imports(path: Path) -> set[str]:
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
    return found


def imported_packages(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


def imported_modules(path: Path) -> set[str]:
    """The modules that are imported, also those that are named behind `from package import`."""
    found = imports(path)
    for node in import_statements(path):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_in(tree: str, name: str) -> bool:
    return name == tree or name.startswith(f"{tree}.")


def is_shell(module: str) -> bool:
    return module not in PURE and any(is_in(part, module) for part in SHELL)


ALL_MODULES = [found for package in PACKAGES for found in modules(package)]


def assert_none(found: Callable[[str, Path], set[str]], among: Iterable[tuple[str, Path]]) -> None:
    """Fails with all modules in which something is found that must not be there."""
    offenders = [(module, sorted(names)) for module, path in among if (names := found(module, path))]
    assert not offenders, "\n".join(f"{module} imports {', '.join(names)}" for module, names in offenders)


def imports_from_beside_or_above(module: str, path: Path) -> set[str]:
    package = module.split(".", maxsplit=1)[0]
    return imported_packages(path) & set(PACKAGES) - {package} - ALLOWED[package]


def imports_of_the_shell(module: str, path: Path) -> set[str]:
    if module.startswith("demo") or is_shell(module):
        return set()
    allowed = {"threading"} if is_in(LOCKED, module) else set()
    return imported_packages(path) & (INPUT_AND_OUTPUT - allowed)


def imports_from_outside_the_rewriter(_module: str, path: Path) -> set[str]:
    return imported_packages(path) - sys.stdlib_module_names - {"__future__", "rewriter", "sqlglot"}


def test_every_module_that_breaks_a_rule_is_named(tmp_path: Path) -> None:
    among = [(f"rewriter.{name}", tmp_path / f"{name}.py") for name in ("first", "pure", "second")]
    for (_, path), text in zip(among, ("import msgspec", "import ast", "from proxy import net"), strict=True):
        path.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=r"rewriter.first imports msgspec\s+rewriter.second imports proxy"):
        assert_none(imports_from_outside_the_rewriter, among)


def test_a_package_imports_only_what_stands_below_it() -> None:
    assert_none(imports_from_beside_or_above, ALL_MODULES)


def test_only_the_shell_knows_of_sockets_and_the_event_loop() -> None:
    assert_none(imports_of_the_shell, ALL_MODULES)


def test_the_rewriter_needs_the_standard_library_and_sqlglot_alone() -> None:
    assert_none(imports_from_outside_the_rewriter, modules("rewriter"))


def place_of(module: str) -> str | None:
    """The innermost package in the order that the module stands in."""
    tree, _, name = module.partition(".")
    found = (place for place in ORDER[tree] if name == place or name.startswith(f"{place}."))
    return max(found, key=len, default=None)


def imports_from_later_packages(module: str, path: Path) -> set[str]:
    tree, own = module.split(".", maxsplit=1)[0], place_of(module)
    assert own is not None
    before = ORDER[tree][: ORDER[tree].index(own)]
    return {place_of(name) or name for name in imports(path) if is_in(tree, name)} - {own, *before}


def test_packages_import_one_way() -> None:
    ordered = [found for tree in ORDER for found in modules(tree) if place_of(found[0]) is not None]
    assert_none(imports_from_later_packages, ordered)


@pytest.mark.parametrize("tree", ORDER)
def test_every_module_has_a_place_in_the_order(tree: str) -> None:
    assert [module for module, _ in modules(tree) if module != tree and place_of(module) is None] == []


@pytest.mark.parametrize("tree", ORDER)
def test_every_place_in_the_order_is_taken(tree: str) -> None:
    assert {place_of(module) for module, _ in modules(tree)} - {None} == set(ORDER[tree])


@pytest.mark.parametrize("tree", ORDER)
def test_modules_import_one_another_in_no_circle(tree: str) -> None:
    TopologicalSorter({module: imported_modules(path) for module, path in modules(tree)}).prepare()


@pytest.mark.parametrize("tree", ORDER)
def test_a_package_says_in_one_line_what_it_is_for_and_holds_nothing_else(tree: str) -> None:
    for _, path in modules(tree):
        if path.name == "__init__.py" and path.parent != ROOT / tree:
            (sentence,) = ast.parse(path.read_text(encoding="utf-8")).body
            assert isinstance(sentence, ast.Expr), path
            assert path.read_text(encoding="utf-8").count("\n") == 1, path
