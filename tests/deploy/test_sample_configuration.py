"""The sample has every key with its default, and the proxy takes it as it is and with every key in force."""

import tomllib
from pathlib import Path

from click.testing import CliRunner
from msgspec.structs import fields, replace

from proxy.cli import main
from proxy.config.config import Config, load
from proxy.config.types import Section
from tools.sample_configuration import COMMAND, FILE, sample, uncommented


def test_the_sample_is_made_from_the_code_as_it_is() -> None:
    assert FILE.read_text(encoding="utf-8") == sample(), f"make it anew: {COMMAND}"


def test_the_proxy_takes_the_sample_as_it_is() -> None:
    checked = CliRunner().invoke(main, ["serve", "--check", "--config", str(FILE)])
    assert checked.exit_code == 0, checked.output
    assert load(FILE) == Config()


def test_the_keys_of_the_sample_have_their_defaults(tmp_path: Path) -> None:
    every = tmp_path / "every.toml"
    every.write_text(uncommented(sample()), encoding="utf-8")
    config = load(every)
    assert len(config.listener) == len(config.proxy_users) == len(config.limits) == 1
    assert replace(config, listener=(), proxy_users={}, limits=()) == Config()


def test_the_sample_has_every_key() -> None:
    tree = tomllib.loads(uncommented(sample()))
    for field in fields(Config):
        section = getattr(Config(), field.name)
        if isinstance(section, Section):
            assert tree[field.name].keys() == set(section.__struct_fields__)
    assert tree.keys() == set(Config.__struct_fields__)
