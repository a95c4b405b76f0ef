"""The Helm chart's values.schema.json, as far as it is made: `python -m tools.helm_values_schema`.

`config` in the chart's values is the tree of the TOML file, held to the types of its sections. All else in the
schema is written by hand.
"""

from __future__ import annotations

import json
import sys
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

import msgspec

from proxy.config.config import Config

ROOT: Final = Path(__file__).parent.parent
FILE: Final = ROOT / "deploy" / "helm" / "starpruner" / "values.schema.json"
COMMAND: Final = "python -m tools.helm_values_schema"

# Keys that a ConfigMap must not have, by their sections.
SECRETS: Final = {"AdminSection": ("users",), "HealthSection": ("password",), "ZooKeeperSection": ("password",)}
# The values' own texts and defaults are in values.yaml and docs/configuration.md.
_LEFT_OUT: Final = ("title", "default")
# Helm reads patterns as RE2, which looks neither ahead nor back.
_NOT_RE2: Final = ("(?<", "(?=", "(?!")


def schema(now: str) -> str:
    """The file, with its part of the configuration made anew."""
    tree = json.loads(now)
    (config,), definitions = msgspec.json.schema_components([Config], ref_template="#/definitions/{name}")
    for section, keys in SECRETS.items():
        for key in keys:
            del definitions[section]["properties"][key]
    tree["properties"]["config"] = config
    tree["definitions"] = _plain(definitions)
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def _plain(node: Any) -> Any:
    """The schema without what Helm does not need or does not understand."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if isinstance(node, str):
        # Docstrings of sections: whether their indentation is left depends on the version of msgspec.
        return cleandoc(node)
    if not isinstance(node, dict):
        return node
    return {key: _plain(value) for key, value in node.items() if not _is_left_out(key, value)}


def _is_left_out(key: str, value: Any) -> bool:
    return key in _LEFT_OUT or (key == "pattern" and any(word in value for word in _NOT_RE2))


if __name__ == "__main__":
    FILE.write_text(schema(FILE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{FILE.relative_to(ROOT)}\n")
