"""Reports of the benchmarks as JSON, beside the tables that they print."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

json_option = click.option(
    "--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="A file for all measurements."
)


def write_json(path: Path | None, report: "DataclassInstance") -> None:
    """Write a report as JSON, if a path is given."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _ = path.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
