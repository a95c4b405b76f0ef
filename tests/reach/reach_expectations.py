"""Outcomes of the corpus' statements as expectations.json has them: `pytest tests/reach --update-reach`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from reach_corpus import FOLDER, statements

PATH: Final = FOLDER / "expectations.json"


@dataclass(frozen=True)
class Expectation:
    """A statement's fact scans: how many could be narrowed, how many are, and why the others are not."""

    kinds: tuple[str, ...]
    narrowable: int
    narrowed: int
    # Of those that could be narrowed, the scans that Spark prunes at run time by itself.
    pruned_by_spark: int
    # A reason for each scan that could be narrowed and is not.
    left: tuple[str, ...]


def expectations() -> dict[str, Expectation]:
    """The recorded expectations by the names of the statements."""
    stored = json.loads(PATH.read_text(encoding="utf-8"))
    return {
        name: Expectation(**{**one, "kinds": tuple(one["kinds"]), "left": tuple(one["left"])})
        for name, one in stored.items()
    }


def write(found: Mapping[str, Expectation]) -> None:
    """Write what was found, keep what was not looked at, and drop what is no statement any more."""
    every = {**(expectations() if PATH.exists() else {}), **found}
    names = [str(statement) for statement in statements() if str(statement) in every]
    lines = [f" {json.dumps(name)}: {json.dumps(asdict(every[name]))}" for name in names]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
