"""The Grafana dashboard: as the tool makes it, of types that Grafana publishes, on metrics that a proxy has."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any
from urllib.request import urlopen

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families

from demo.hive import Endpoint, free_port
from demo.proxy_process import proxy_process
from tools import grafana_dashboard
from tools.metrics_table import metrics

ROOT = Path(__file__).parent.parent.parent
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
# Prometheus adds the first two as it scrapes, and histograms have the third.
ADDED = {"job", "instance", "le"}

_SERIES = re.compile(r"\b(?:starpruner|process)_\w+")
_LABELED = re.compile(r"\b(starpruner_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPED = re.compile(r"\bby \(([^)]*)\)")


def dashboard() -> Any:
    return json.loads(grafana_dashboard.FILE.read_text(encoding="utf-8"))


def test_the_dashboard_is_the_one_that_the_tool_makes() -> None:
    for file, text in grafana_dashboard.texts().items():
        assert file.read_text(encoding="utf-8") == text, "make it anew: python -m tools.grafana_dashboard"


def test_grafana_knows_every_field_of_the_dashboard() -> None:
    assert list(unknown(dashboard())) == []


def test_a_field_that_grafana_does_not_know_would_be_found() -> None:
    wrong = dashboard()
    wrong["panels"][1]["options"]["colourMode"] = "value"
    wrong["panels"][1]["targets"][0]["expression"] = "1"
    assert list(unknown(wrong)) == ["/panels[1]/targets[0]/expression", "/panels[1]/options/colourMode"]


def unknown(written: Any) -> Iterator[str]:
    """The fields that are gone, or have another value, once Grafana's own types have read them."""
    register_default_plugins()
    read = json.loads(json.dumps(Dashboard.from_json(written), cls=JSONEncoder))
    yield from _missing(written, read, "")


def _missing(written: Any, read: Any, path: str) -> Iterator[str]:
    if isinstance(written, dict):
        for key, value in written.items():
            if not isinstance(read, dict) or key not in read:
                yield f"{path}/{key}"
            else:
                yield from _missing(value, read[key], f"{path}/{key}")
    elif isinstance(written, list):
        for place, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from _missing(one, other, f"{path}[{place}]")
    elif written != read:
        yield path


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
        at = panel["gridPos"]
        for place in (
            (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
        ):
            assert place not in taken, (panel["title"], taken[place])
            assert place[0] < 24
            taken[place] = panel["title"]


def asked() -> dict[str, list[str]]:
    """All expressions: those of the dashboard, and those of the alerts."""
    variables = [one["query"] for one in dashboard()["templating"]["list"]]
    rules = re.sub(r"^\s*#.*$", "", ALERTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"dashboard": [*grafana_dashboard.expressions(), *variables], "alerts": [rules]}


def test_every_series_is_one_of_a_running_proxy(tmp_path: Path) -> None:
    nobody = Endpoint("127.0.0.1", free_port())
    with proxy_process(nobody, tmp_path) as proxy, urlopen(f"{proxy.admin_url}/metrics", timeout=60) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    there = {series for metric in metrics() for series in metric.series}
    named = {family.name for family in families}
    assert {metric.name for metric in metrics()} <= named
    process = {sample.name for family in families for sample in family.samples if "process_" in sample.name}
    used = {series for expressions in asked().values() for one in expressions for series in _SERIES.findall(one)}
    assert used <= there | process


@pytest.mark.parametrize("place", ["dashboard", "alerts"])
def test_every_label_and_every_value_is_one_that_the_series_has(place: str) -> None:
    labels = {series: metric.labels for metric in metrics() for series in metric.series}
    for expression in asked()[place]:
        known: set[str] = set(ADDED)
        for series, matchers in _LABELED.findall(expression):
            known |= labels[series].keys()
            for label, sign, value in _MATCHER.findall(matchers):
                if label in ADDED:
                    continue
                assert label in labels[series], (series, label)
                values = value.split("|") if "~" in sign else [value]
                assert set(values) <= labels[series][label], (series, label, values)
        grouped = {name.strip() for names in _GROUPED.findall(expression) for name in names.split(",")}
        assert grouped <= known, expression


def test_prometheus_reads_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    promtool = which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: it comes with Debian's package prometheus")
    variables = {"$__rate_interval": "5m", "$__range": "6h", "$job": ".*", "$instance": ".*"}
    groups = ["groups:", "- name: dashboard", "  rules:"]
    for number, expression in enumerate(grafana_dashboard.expressions()):
        asked_of_prometheus = re.sub(r"\$\w+", lambda name: variables[name[0]], expression)
        groups += [f"  - record: panel:{number}", f"    expr: {json.dumps(asked_of_prometheus)}"]
    rules = tmp_path / "rules.yml"
    rules.write_text("\n".join(groups), encoding="utf-8")
    checked = subprocess.run([promtool, "check", "rules", rules], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
