"""Reports of the benchmarks as JSON, beside the tables that they print."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

json_option = click.option(
    "--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="A file for all measurements."
)


def write_json(path: Path | None, report: "DataclassInstance") -> None:
    """Write a report as JSON, if a path is given."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A benchmark that is stopped meanwhile leaves the whole report of before.
        unfinished = path.with_name(f"{path.name}.unfinished")
        text = json.dumps(asdict(report), indent=1, default=msgspec.to_builtins)
        _ = unfinished.write_text(f"{text}\n", encoding="utf-8")
        _ = unfinished.replace(path)
