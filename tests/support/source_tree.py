"""The files of the checkout, which of them a test module depends on, and a digest of those.

A module depends on what it imports, on what that imports, and so on; on modules and files whose names stand in it
as texts, such as those of a command that it starts; and on the other files in the folders of all those, such as
golden texts and templates. Files outside the folders that are known are taken for a part of everything.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from platform import python_version
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# The imports of each file by the digest of its text: to parse all files takes seconds.
_KEPT: Final = Path(".starpruner") / "imports.json"

# Folders of code. Their other files belong to whoever imports a module there; below tests/, in the same folder.
_CODE: Final = ("rewriter", "proxy", "pipeline", "demo", "benchmarks", "tools", "tests")
# On these depends who names them.
_NAMED: Final = (
    *("docs", "deploy", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "Makefile"),
    *(".ci", ".dockerignore", ".gitignore", ".gitattributes"),
)
# Records of tests that passed say nothing of how they end the next time.
STAMP_SUFFIX: Final = ".passed"
DEEP_RECORD: Final = "docs/test-all.json"
_RECORDS: Final = ("tests/rewriter/golden/verified/", DEEP_RECORD, "docs/compatibility.")
# Images are built by these files, of what .dockerignore lets in.
_IMAGES: Final = "deploy/docker/"
_IN_IMAGES: Final = ("rewriter", "proxy", "pipeline", "demo")
# A command of ours that is started by its name.
_COMMANDS: Final = {"starpruner": "proxy/cli.py"}

_CODE_IN_TEXT: Final = re.compile(rf"\b(?:from|import)\s+((?:{'|'.join(_CODE)})[\w.]*)")
_NAME: Final = re.compile(r"[\w./-]+")


def told_by_git(root: Path, *arguments: str) -> str | None:
    """The output of git about a checkout, which may be another user's; None where git cannot tell."""
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-c", "safe.directory=*", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout


@dataclass(frozen=True)
class SourceTree:
    """The files of a checkout by their paths, with the digests of their contents; and what each module names."""

    digests: Mapping[str, str]
    # Names of modules that a file of Python imports or that its texts have, and paths that stand in its texts.
    names: Mapping[str, tuple[str, ...]]
    # The folders in which tests look for modules, each with a slash, the checkout itself as an empty text.
    search: tuple[str, ...]
    # Versions of what is installed.
    versions: str = ""

    @classmethod
    def read(cls, root: Path = ROOT) -> SourceTree | None:
        """The tree as it is now, files that git does not know yet included; None where git cannot tell."""
        listed = told_by_git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if listed is None:
            return None
        texts = {path: (root / path).read_bytes() for path in listed.split("\0") if (root / path).is_file()}
        return cls.of(texts, root / _KEPT)

    @classmethod
    def of(cls, texts: Mapping[str, bytes], kept: Path | None = None) -> SourceTree:
        """The tree of these files."""
        digests = {path: sha256(text).hexdigest() for path, text in texts.items()}
        known: dict[str, list[str]] = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
        modules = {path: digests[path] for path in texts if path.endswith(".py")}
        missing = [path for path, digest in modules.items() if digest not in known]
        known.update((modules[path], sorted(set(_names_in(texts[path].decode())))) for path in missing)
        if kept is not None and missing:
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_suffix(f".{sha256(repr(missing).encode()).hexdigest()[:8]}")
            part.write_text(json.dumps({digest: known[digest] for digest in modules.values()}))
            part.replace(kept)
        project = tomllib.loads(texts["pyproject.toml"].decode())
        folders = project["tool"]["pytest"]["ini_options"]["pythonpath"]
        search = ("", *(f"{folder}/" for folder in folders))
        names = {path: tuple(known[digest]) for path, digest in modules.items()}
        return cls(digests, names, search, _versions(project["project"]))

    def digest_of(self, modules: Iterable[str], beside: Iterable[str] = ()) -> str:
        """The digest of all that modules depend on, and of the files beside them alone."""
        paths = sorted(self.inputs_of(modules).union(path for path in beside if path in self.digests))
        parts = [self.versions, *(f"{path} {self.digests[path]}" for path in paths)]
        return sha256("\n".join(parts).encode()).hexdigest()[:32]

    def inputs_of(self, modules: Iterable[str]) -> set[str]:
        """The paths of all files that modules depend on, their own included."""
        found = self.reached_from(modules)
        if any(path.startswith(_IMAGES) for path in found):
            found |= {path for folder in _IN_IMAGES for path in self._folders.get(folder, ())}
        units = {_unit(path) for path in found}
        return found | {path for path in self._data if _unit(path) in units} | self._everybodys

    def reached_from(self, modules: Iterable[str]) -> set[str]:
        """The paths that modules name, and those that these name, and so on."""
        found = {path for path in modules if path in self.digests}
        waiting = list(found)
        while waiting:
            named = self.named_by(waiting.pop()) - found
            found |= named
            waiting += named
        return found

    def named_by(self, path: str) -> frozenset[str]:
        """The paths that a module imports, or names in its texts."""
        return self._edges.get(path, frozenset())

    @cached_property
    def _edges(self) -> Mapping[str, frozenset[str]]:
        return {path: frozenset(self._resolved(path, names)) for path, names in self.names.items()}

    @cached_property
    def _data(self) -> tuple[str, ...]:
        return tuple(
            path for path in self.digests if _unit(path) and not path.endswith(".py") and not _is_record(path)
        )

    @cached_property
    def _everybodys(self) -> frozenset[str]:
        known = (*_CODE, *_NAMED)
        return frozenset(path for path in self.digests if path.split("/")[0] not in known)

    @cached_property
    def _folders(self) -> Mapping[str, tuple[str, ...]]:
        """The files below each folder."""
        found: dict[str, list[str]] = {}
        for path in self.digests:
            for folder in list(accumulate(path.split("/"), lambda start, part: f"{start}/{part}"))[:-1]:
                found.setdefault(folder, []).append(path)
        return {folder: tuple(paths) for folder, paths in found.items()}

    def _resolved(self, path: str, names: Iterable[str]) -> Iterator[str]:
        near = f"{path.rpartition('/')[0]}/"
        for name in names:
            if name in _COMMANDS:
                yield _COMMANDS[name]
            elif "/" in name or name in _NAMED:
                yield from self._files_of(name)
            else:
                yield from self._module(name, near)

    def _files_of(self, name: str) -> Iterator[str]:
        plain = name.strip("/")
        if plain in self.digests:
            yield plain
        elif plain.split("/")[0] in (*_CODE, *_NAMED):
            yield from (path for path in self._folders.get(plain, ()) if not _is_record(path))

    def _module(self, name: str, near: str) -> Iterator[str]:
        """The module of that name, or the one that a name is taken from, and the packages that it is in."""
        for whole in accumulate(name.split("."), lambda start, part: f"{start}/{part}"):
            for folder in (near, *self.search):
                found = [
                    one for one in (f"{folder}{whole}.py", f"{folder}{whole}/__init__.py") if one in self.digests
                ]
                if found:
                    yield found[0]
                    break


def _unit(path: str) -> str:
    """The folder of code to which a path belongs; empty for one that belongs to none."""
    parts = path.split("/")
    if parts[0] not in _CODE or len(parts) == 1:
        return ""
    return "/".join(parts[:2]) if parts[0] == "tests" and len(parts) > 2 else parts[0]


def _is_record(path: str) -> bool:
    return path.endswith(STAMP_SUFFIX) or path.startswith(_RECORDS)


def _names_in(text: str) -> Iterator[str]:
    """The names of modules that a text of Python imports, and names that may be of modules or files."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _CODE_IN_TEXT.findall(node.value)
            if _NAME.fullmatch(node.value) and _is_named(node.value):
                yield node.value


def _is_named(text: str) -> bool:
    """True if a text may be the name of a module with a dot, or a path."""
    if text in _NAMED or text in _COMMANDS:
        return True
    first = re.split(r"[./]", text, maxsplit=1)[0]
    return text != first and (first in _CODE or text.split("/", maxsplit=1)[0] in _NAMED)


def _versions(project: Mapping[str, object]) -> str:
    """The versions of Python, and of what the product and its Spark need.

    Tools of tests change often, and no answer of a server.
    """
    declared = _declared(project)
    found = []
    for name in sorted(declared):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} is not installed")
    beside = sorted(path.name for path in (ROOT / ".starpruner" / "spark-4.1").glob("pyspark-*.dist-info"))
    return "\n".join((f"Python {python_version()[:4]}", *found, *beside))


def _declared(project: Mapping[str, object]) -> set[str]:
    extras = project["optional-dependencies"]
    needed = project["dependencies"]
    assert isinstance(extras, dict)
    assert isinstance(needed, list)
    return {re.split(r"[^\w-]", one, maxsplit=1)[0] for one in (*needed, *extras["demo"], *extras["zookeeper"])}
