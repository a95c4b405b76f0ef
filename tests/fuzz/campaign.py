"""Fuzzes one target, led by the coverage of the proxy's code: `python tests/fuzz/campaign.py rows --seconds 60`.

Needs the extra `fuzz`. An input that breaks a target is written to the folder of the inputs as crash-*; it belongs
into `tests/fuzz/found` then, where every test run tries it.
"""

import sys
from pathlib import Path

import atheris
import click

# As pytest finds `support`.
sys.path.insert(0, str(Path(__file__).parent.parent))

with atheris.instrument_imports(include=["proxy"]):
    from fuzz_targets import TARGETS, seeds

# Python itself, Thrift's library and the inputs take about a tenth.
MEMORY_MB_MAX = 1024
# No input takes a millisecond for each of its bytes.
SECONDS_PER_INPUT_MAX = 5


@click.command()
@click.argument("target", type=click.Choice(sorted(TARGETS)))
@click.option("--seconds", default=0, help="When to end; 0 for never.")
@click.option("--inputs", default=-1, help="How many to try; -1 for no end.")
# The longest seed has 2 KB. Shorter inputs say most of it more quickly.
@click.option("--bytes", "bytes_max", default=4096, show_default=True, help="The longest input.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".starpruner/fuzz"),
    show_default=True,
    help="Where inputs that reach new code are kept.",
)
def main(target: str, seconds: int, inputs: int, bytes_max: int, directory: Path) -> None:
    """Fuzz a target."""
    corpus = directory / target
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        _ = (corpus / f"seed-{number}").write_bytes(seed)
    options = {
        "max_total_time": seconds,
        "runs": inputs,
        "max_len": bytes_max,
        "timeout": SECONDS_PER_INPUT_MAX,
        "rss_limit_mb": MEMORY_MB_MAX,
        "artifact_prefix": f"{corpus}/",
    }
    atheris.Setup(
        [sys.argv[0], *(f"-{key}={value}" for key, value in options.items()), str(corpus)], TARGETS[target]
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
