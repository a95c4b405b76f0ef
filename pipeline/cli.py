"""`starpruner pipeline`: the jobs that lay tables out, and that index their files."""

import click


@click.group()
def pipeline() -> None:
    """Lay tables out so that files can be skipped, and index their files."""
