"""The configuration: what it takes, and the sentence for what it does not."""

from pathlib import Path

import pytest

from proxy.address import Address
from proxy.config import Config, ConfigError, address, load


def written(folder: Path, text: str) -> Path:
    path = folder / "starpruner.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold() -> None:
    assert load(None) == Config()


def test_a_file_and_overrides_are_read_the_later_ones_winning(tmp_path: Path) -> None:
    path = written(tmp_path, '[proxy]\nbackend = "spark:10000"\n[rewrite]\nenabled = true\nkey_rows_max = 7\n')
    config = load(path, ("rewrite.enabled=false", "rewrite.key_query_deadline_s=2.5", "rewrite.key_rows_max=8"))
    assert config.proxy.backend == "spark:10000"
    assert config.rewrite.enabled is False
    assert config.rewrite.key_query_deadline_s == 2.5
    assert config.rewrite.key_rows_max == 8


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[rewrite]\nenable = true", "rewrite: Object contains unknown field `enable`"),
        ("[rewriting]\n", "Object contains unknown field `rewriting`"),
        ('[rewrite]\nenabled = "yes"', "rewrite.enabled: Expected `bool`, got `str`"),
        ("[rewrite]\nkey_rows_max = 0", "rewrite.key_rows_max: Expected `int` >= 1"),
        ('[proxy]\nlisten = "nowhere"', "proxy.listen: Expected `str` matching regex"),
        ('[proxy]\nlisten = "host:99999"', "host:99999: the port is 99999, expected 0 to 65535"),
        ("[rewrite\n", "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence_that_names_it(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=r"starpruner\.toml|port") as refused:
        load(written(tmp_path, text))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("rewrite.enabled", "--set rewrite.enabled: expected section.key=value"),
        ("enabled=false", "--set enabled=false: expected section.key=value"),
        ("rewrite.enabled=perhaps", "--set: rewrite.enabled: Expected `bool`"),
        ("rewrite.key_rows_max=many", "--set: rewrite.key_rows_max: Expected `int`"),
        ("rewrite.nothing=1", "--set: rewrite: Object contains unknown field `nothing`"),
    ],
)
def test_a_wrong_override_is_refused_with_a_sentence_that_names_it(override: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, (override,))
    assert sentence in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml: cannot be read: No such file"):
        load(tmp_path / "nothing.toml")


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert address("[::1]:10001") == Address("::1", 10001)


def test_a_list_is_set_as_toml_has_it() -> None:
    overrides = ('rewrite.tables_off=["shop.sales", "logs.*"]',)
    assert load(None, overrides).rewrite.tables_off == ("shop.sales", "logs.*")
    with pytest.raises(ConfigError, match="is not a list as TOML has it"):
        load(None, ("rewrite.tables_off=[shop]",))
    with pytest.raises(ConfigError, match=r"rewrite\.tables_off"):
        load(None, ('rewrite.tables_off=["a.b.c.d"]',))
