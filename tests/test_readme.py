"""The README's claims about the configuration are the configuration."""

import re
import tomllib
from pathlib import Path

import msgspec

from proxy.config.config import Config

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_configuration_in_the_readme_is_every_key_with_its_default() -> None:
    found = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    assert tomllib.loads(found[1]) == msgspec.json.decode(msgspec.json.encode(Config()))


def test_every_file_that_the_readme_names_is_there() -> None:
    root = Path(__file__).parent.parent
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert targets
    assert [target for target in targets if not (root / target).exists()] == []
