"""Names the test modules that a change of files touches most closely, for `make test-of FILES=".."`.

    python -m tools.tests_of rewriter/semijoins/days_query.py

Those are the modules that import a changed file, by helpers of tests too but not by other modules of the product:
by these, nearly all tests depend on nearly all files. Tests stand in the folder of their package, so that the
folder of a changed file's package is named whole. A change of the rewriter has its golden cases, mutations and
generated statements beside them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

ROOT: Final = Path(__file__).parent.parent
# These show most of a change of the rewriter in a minute. A change of what is sound needs test_sieve.py and
# test_mutations.py whole, which take some minutes.
_PROOFS: Final = (
    "tests/rewriter/test_golden.py",
    "tests/differential/test_mutations.py::test_the_small_cases_notice_a_rule_that_is_off",
    "tests/differential/test_sieve.py::test_a_narrowed_statement_answers_as_the_original",
)


def touched_by(changed: Iterable[str], named_by: dict[str, set[str]]) -> set[str]:
    """The test modules and folders for changed files; `named_by` has the paths that name each path."""
    found: set[str] = set()
    for path in changed:
        waiting, seen = [path], {path}
        while waiting:
            one = waiting.pop()
            if Path(one).name.startswith("test_"):
                found.add(one)
            near = {other for other in named_by.get(one, ()) if other.startswith(("tests/", "benchmarks/"))} - seen
            seen |= near
            waiting += near
        folder = f"tests/{Path(path).parent.as_posix()}"
        if "/" in path and not path.startswith("tests/") and (ROOT / folder).is_dir():
            found.add(folder)
        if path.startswith("rewriter/"):
            # Of these modules, those parts.
            found -= {proof.partition("::")[0] for proof in _PROOFS}
            found.update(_PROOFS)
    # A module of a folder that is named whole would run twice.
    return {one for one in found if not any(one.startswith((f"{other}/", f"{other}::")) for other in found)}


@click.command()
@click.argument("files", nargs=-1, required=True)
def main(files: tuple[str, ...]) -> None:
    """Print them, by a space between two."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.source_tree import SourceTree  # noqa: PLC0415 - tests are no package that is installed

    tree = SourceTree.read()
    if tree is None:
        raise click.ClickException("git does not tell the files of this folder")
    unknown = [path for path in files if path not in tree.digests]
    if unknown:
        raise click.ClickException(f"no such file in the checkout: {', '.join(unknown)}")
    named_by: dict[str, set[str]] = {}
    for path in tree.names:
        for named in tree.named_by(path):
            named_by.setdefault(named, set()).add(path)
    found = touched_by(files, named_by)
    if not found:
        raise click.ClickException(f"no test imports {', '.join(files)}: run make test-fast")
    click.echo(" ".join(sorted(found)))


if __name__ == "__main__":
    main()
