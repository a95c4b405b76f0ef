"""The group `starpruner pipeline`: commands that lay tables out, and that index their files."""

import click

from pipeline.commands.compact import compact_command
from pipeline.commands.index import index as index_command
from pipeline.commands.load import load as load_command


@click.group()
def pipeline() -> None:
    """Lay tables out so that files can be skipped, and index their files."""


pipeline.add_command(index_command)
pipeline.add_command(compact_command)
pipeline.add_command(load_command)
