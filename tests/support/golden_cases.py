"""The golden cases: RULE.toml is written by hand, RULE.expected.sql by `pytest --update-goldens`."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

from rewriter import Catalog, Column, SkipReason, TableFacts, TableKind, TableName, ViewText
from support.goldens import RecordedRow

FOLDER = Path(__file__).parents[1] / "rewriter" / "golden"
DATABASE = "golden"
_CATALOG = "catalog.json"
_HEADING = "-- case: "
_KEY_QUERY = "-- key query: "
_ANSWER = "-- answer: "
_CREATED = re.compile(r"CREATE (GLOBAL TEMPORARY )?(?:TABLE|VIEW) (\S+)")


Row: TypeAlias = RecordedRow


@dataclass(frozen=True)
class Expected:
    """What a rewrite comes to: its key queries, what they answered, and the text."""

    key_queries: tuple[str, ...]
    answers: tuple[tuple[Row, ...], ...]
    rewritten: str


@dataclass(frozen=True)
class Take:
    """A statement that is rewritten."""

    rule: str
    name: str
    sql: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.name}"


@dataclass(frozen=True)
class Refusal:
    """A statement of which one scan, or everything, is left alone for a reason."""

    rule: str
    name: str
    sql: str
    scan: str | None
    reason: SkipReason
    executes: bool
    # The answers of its key queries, where they are the reason.
    answers: tuple[tuple[Row, ...], ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.name}"


def _files(kind: str) -> Iterator[tuple[str, dict[str, list[dict[str, str]]]]]:
    for path in sorted((FOLDER / kind).glob("*.toml")):
        rule = path.relative_to(FOLDER).with_suffix("").as_posix()
        yield rule, tomllib.loads(path.read_text(encoding="utf-8"))


def takes(kind: str = "") -> list[Take]:
    """Every case that must be rewritten. A rule without one is no rule. A kind has tables of its own."""
    found = [
        Take(rule, case["name"], case["sql"].strip().replace("{database}", DATABASE))
        for rule, content in _files(kind)
        for case in content["takes"]
    ]
    assert len({str(case) for case in found}) == len(found), "two cases have the same name"
    return found


def refusals(kind: str = "") -> list[Refusal]:
    """Every case that must be refused."""
    return [
        Refusal(
            rule,
            case["name"],
            case["sql"].strip().replace("{database}", DATABASE),
            case.get("scan"),
            SkipReason[case["reason"]],
            executes=bool(case.get("executes", True)),
            answers=tuple(tuple(map(tuple, rows)) for rows in case.get("answers", ())),
        )
        for rule, content in _files(kind)
        for case in content["refuses"]
    ]


def expectations(rule: str) -> dict[str, Expected]:
    """What each case of the rule comes to, by name."""
    text = (FOLDER / f"{rule}.expected.sql").read_text(encoding="utf-8")
    return dict(_parse(block) for block in text.split(_HEADING)[1:])


def expectation(case: Take) -> Expected:
    """What a case comes to."""
    return expectations(case.rule)[case.name]


def _parse(block: str) -> tuple[str, Expected]:
    name, *lines = block.rstrip("\n").split("\n")
    queries = tuple(line.removeprefix(_KEY_QUERY) for line in lines if line.startswith(_KEY_QUERY))
    answers = tuple(_rows(line.removeprefix(_ANSWER)) for line in lines if line.startswith(_ANSWER))
    start = 1 + max((i for i, line in enumerate(lines) if line.startswith((_KEY_QUERY, _ANSWER))), default=-1)
    # A newline inside a key query is written as a visible escape: each stands on one line.
    unescaped = tuple(query.replace("\\n", "\n").replace("\\\\", "\\") for query in queries)
    return name, Expected(unescaped, answers, "\n".join(lines[start:]))


def _rows(line: str) -> tuple[Row, ...]:
    return tuple(tuple(row) for row in json.loads(line))


def write(rule: str, cases: dict[str, Expected]) -> None:
    """Write the expectations of a rule, for `--update-goldens`."""
    lines = [f"-- Written by pytest --update-goldens from {rule}.toml; read the difference before you commit it."]
    for name, case in cases.items():
        lines.append(f"\n{_HEADING}{name}")
        for query, rows in zip(case.key_queries, case.answers, strict=True):
            escaped = query.replace("\\", "\\\\").replace("\n", "\\n")
            lines += [_KEY_QUERY + escaped, _ANSWER + json.dumps(rows, ensure_ascii=False)]
        lines.append(case.rewritten)
    (FOLDER / f"{rule}.expected.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")


def table_statements(kind: str = "") -> list[str]:
    """The statements that make the tables."""
    lines = (FOLDER / kind / "tables.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [statement.strip() for statement in text.split(";\n") if statement.strip(" \n;")]


def table_names(kind: str = "") -> list[str]:
    """The tables and views of the golden cases."""
    found = (_CREATED.match(statement) for statement in table_statements(kind))
    return [f"{'global_temp.' if created[1] else ''}{created[2]}" for created in found if created is not None]


def catalog(kind: str = "", folder: Path = FOLDER) -> dict[str, TableFacts]:
    """The facts of the tables by the names that they are created by, as the server last described them."""
    described = json.loads((folder / kind / _CATALOG).read_text(encoding="utf-8"))
    return {name: _facts(value) for name, value in described.items()}


def _facts(value: dict[str, object]) -> TableFacts:
    columns, partition_columns = value["columns"], value["partition_columns"]
    assert isinstance(columns, dict)
    assert isinstance(partition_columns, list)
    return TableFacts(
        columns=tuple(Column(name, type_name) for name, type_name in columns.items()),
        partition_columns=tuple(partition_columns),
        provider=str(value["provider"]),
        converted_format=str(value.get("converted_format", "")),
        kind=TableKind(value["kind"]),
        size_bytes=_size(value.get("size_bytes")),
        view=_view(value.get("view")),
    )


def _size(value: object) -> int | None:
    assert value is None or isinstance(value, int)
    return value


def _view(value: object) -> ViewText | None:
    if not isinstance(value, dict):
        return None
    catalog, database = value["namespace"]
    return ViewText(value["text"], (catalog, database), tuple(value["outputs"]), value["is_temporary"])


def without_full_names(facts: dict[str, TableFacts]) -> dict[str, TableFacts]:
    """The facts as catalog.json has them: it is the same one, whatever database the tables are made in."""
    return {name: replace(known, full_name=None) for name, known in facts.items()}


def write_catalog(facts: dict[str, TableFacts], kind: str = "", folder: Path = FOLDER) -> None:
    """Write the facts, for `--update-goldens`."""
    described = {
        name: {
            "columns": {column.name: column.type_name for column in known.columns},
            "partition_columns": list(known.partition_columns),
            "provider": known.provider,
            "kind": known.kind.value,
            **({"converted_format": known.converted_format} if known.converted_format else {}),
            **({} if known.size_bytes is None else {"size_bytes": known.size_bytes}),
            **({} if known.view is None else {"view": asdict(known.view)}),
        }
        for name, known in facts.items()
    }
    (folder / kind / _CATALOG).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def pure_catalog(names: frozenset[TableName]) -> Catalog:
    """The catalog of the given names: None for one that is no table."""
    known = catalog()
    return {name: known.get(_as_created(name).lower()) for name in names}


def _as_created(name: TableName) -> str:
    """The name as tables.sql writes it: with its database only where that is not the tables' own."""
    *database, table = name.parts[-2:]
    return table if database in ([], [DATABASE]) else ".".join((*database, table))
