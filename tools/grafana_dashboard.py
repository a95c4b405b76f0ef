"""The dashboard in deploy/grafana, made of the table of panels below: `python -m tools.grafana_dashboard`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
FILE: Final = ROOT / "deploy" / "grafana" / "starpruner.json"
# For the chart, which can read its own files alone, without its blanks.
COPY: Final = ROOT / "deploy" / "helm" / "starpruner" / "dashboard.json"

# The version of Grafana's dashboard schema that this is written for: Grafana 11, and read by later ones.
_SCHEMA_VERSION: Final = 39
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
# The series of the chosen proxies.
_CHOSEN: Final = 'job=~"$job",instance=~"$instance"'
# The columns of Grafana's grid.
_COLUMNS: Final = 24
_STAT_HEIGHT: Final = 4
_HEIGHT: Final = 8

_REWRITTEN: Final = 'outcome="rewritten"'
_FALLBACKS: Final = 'outcome=~"recovered|overtaken|failed_twice"'


@dataclass(frozen=True)
class Query:
    """An expression of PromQL, in which `%` stands for the labels of the chosen proxies, and its legend."""

    expression: str
    legend: str = ""

    @property
    def text(self) -> str:
        """The expression as Grafana sends it, but for its variables."""
        return self.expression.replace("{%", "{" + _CHOSEN)


@dataclass(frozen=True)
class Panel:
    """A panel, and the question that it answers."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False
    # Values may be below zero.
    signed: bool = False


def _increase(series: str, labels: str = "") -> str:
    return f"sum(increase(starpruner_{series}{{%{',' if labels else ''}{labels}}}[$__range]))"


def _rate(series: str, by: str, labels: str = "") -> str:
    return f"sum by ({by}) (rate(starpruner_{series}{{%{',' if labels else ''}{labels}}}[$__rate_interval]))"


def _quantile(share: float, series: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {_rate(f'{series}_bucket', labels)})"


def _by_rule(result: str) -> str:
    series = f'starpruner_rule_statements_total{{%,result="{result}"}}'
    return f"sum by (rule) (increase({series}[$__range])) > 0"


def _stat(title: str, description: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, description, (Query(expression),), unit, "stat", width=4)


ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    (
        "What was gained",
        (
            _stat(
                "Statements",
                "Statements that rewriting was offered to, in the chosen time.",
                _increase("statements_total"),
            ),
            _stat(
                "Share rewritten",
                "The share of these that went out rewritten.",
                f"{_increase('statements_total', _REWRITTEN)} / {_increase('statements_total')}",
                "percentunit",
            ),
            _stat(
                "Partitions not read",
                "Of finished statements, where the list of partitions was at hand. Nothing is estimated.",
                _increase("skipped_partitions_total"),
            ),
            _stat(
                "Data not read",
                "The size of files that Spark was told to skip, by a file index or by Iceberg.",
                _increase("skipped_bytes_total"),
                "bytes",
            ),
            _stat(
                "Fallbacks",
                "Statements whose original was run after the rewritten text failed or was out of date.",
                _increase("statement_seconds_count", _FALLBACKS),
            ),
            _stat(
                "Failed",
                "Statements whose client has an error: mostly the statement's own.",
                _increase("statement_seconds_count", 'outcome=~"failed|failed_twice"'),
            ),
            Panel(
                "Statements by outcome",
                "Ends a second, by the text that was sent and how it ended.",
                (Query(_rate("statement_seconds_count", "sent, outcome"), "{{sent}}: {{outcome}}"),),
                "ops",
                stacked=True,
            ),
            Panel(
                "Time that statements took",
                "Median and p95 of statements that finished, by the text that was sent. They are not the same "
                "statements: the page Digests compares runs of one statement.",
                tuple(
                    Query(
                        f"histogram_quantile({share}, "
                        + _rate("statement_seconds_bucket", "le, sent", 'outcome="finished"')
                        + ")",
                        f"{{{{sent}}}} {name}",
                    )
                    for share, name in ((0.5, "median"), (0.95, "p95"))
                ),
                "s",
            ),
            Panel(
                "Reasons",
                "Why statements and scans stayed as they were, in the chosen time. The page Why not has advice.",
                (
                    Query(
                        "topk(12, sum by (reason) (increase(starpruner_skips_total{%}[$__range])))", "{{reason}}"
                    ),
                ),
                kind="bargauge",
            ),
            Panel(
                "Time saved in 24 hours",
                "Measured by originals of the same statements, less what was spent in vain; estimated for others; "
                "and what was spent in vain. Below zero, time was lost. Replicas with one history count the same.",
                (Query("starpruner_saved_seconds{%}", "{{instance}}: {{kind}}"),),
                "s",
                width=24,
                signed=True,
            ),
        ),
    ),
    (
        "Deciding",
        (
            Panel(
                "Time until a statement went on",
                "From its arrival, key queries included.",
                tuple(
                    Query(_quantile(share, "decision_seconds"), name)
                    for share, name in ((0.5, "median"), (0.95, "p95"), (0.99, "p99"))
                ),
                "s",
            ),
            Panel(
                "Time that key queries took",
                "p95, by whether they were answered.",
                (Query(_quantile(0.95, "key_query_seconds", "outcome"), "{{outcome}}"),),
                "s",
            ),
            Panel(
                "Key queries",
                "Key queries a second, by whether they were answered.",
                (Query(_rate("key_query_seconds_count", "outcome"), "{{outcome}}"),),
                "ops",
                stacked=True,
            ),
            Panel(
                "Statements by rule",
                "Statements in the chosen time that were narrowed by each rule.",
                (
                    Query(
                        _by_rule("applied"),
                        "{{rule}}",
                    ),
                ),
                kind="bargauge",
            ),
            Panel(
                "Rules that fell back",
                "Statements in the chosen time that fell back, by each of their rules.",
                (
                    Query(
                        _by_rule("fell_back"),
                        "{{rule}}",
                    ),
                ),
                kind="bargauge",
            ),
            Panel(
                "Time of deciding by rule",
                "Seconds of deciding a second, of the statements that tried a rule; all of it for each of their "
                "rules.",
                (
                    Query(
                        "topk(8, " + _rate("rule_decision_seconds_total", "rule") + " > 0)",
                        "{{rule}}",
                    ),
                ),
                "s",
            ),
            Panel(
                "Cost gate",
                "Verdicts a second: statements that it leaves are not worth their key queries.",
                (Query(_rate("gate_decisions_total", "verdict"), "{{verdict}}"),),
                "ops",
                stacked=True,
            ),
            Panel(
                "Remembered keys",
                "Remembered keys that were asked for again while the statement ran, by what came of it.",
                (Query(_rate("key_checks_total", "verdict"), "{{verdict}}"),),
                "ops",
                stacked=True,
            ),
            Panel(
                "Scans",
                "Table references a second, by whether they were narrowed.",
                (Query(_rate("scans_total", "outcome"), "{{outcome}}"),),
                "ops",
                stacked=True,
            ),
        ),
    ),
    (
        "Safety",
        (
            Panel(
                "Fallbacks",
                "Statements a second whose original was run after all.",
                (Query(_rate("statement_seconds_count", "outcome", _FALLBACKS), "{{outcome}}"),),
                "ops",
                stacked=True,
            ),
            Panel(
                "Quarantine",
                "Rules and fingerprints that are left alone because they did harm.",
                (Query("sum by (kind) (starpruner_quarantined{%})", "{{kind}}"),),
            ),
            Panel(
                "Shadow comparisons",
                "In shadow mode: answers of the original and of the rewritten text, compared.",
                (Query(_rate("shadow_comparisons_total", "verdict"), "{{verdict}}"),),
                "ops",
                stacked=True,
            ),
            Panel(
                "Overtaken writes",
                "Rewritten statements that wrote while a table was written that their keys came from.",
                (Query("sum(increase(starpruner_overtaken_writes_total{%}[$__rate_interval]))", "overtaken"),),
            ),
            Panel(
                "Metastore limits",
                "Tables of which the metastore is sent less, because it refused a filter.",
                (Query("sum(starpruner_metastore_tables_lowered{%})", "tables"),),
            ),
            Panel(
                "Files skipped",
                "Files a second that Spark was told to skip.",
                (Query("sum(rate(starpruner_skipped_files_total{%}[$__rate_interval]))", "files"),),
            ),
        ),
    ),
    (
        "Backends",
        (
            Panel(
                "Backends up",
                "1 where a backend takes sessions as a matter of course.",
                (
                    Query("min by (backend) (starpruner_backend_healthy{%} > bool 0)", "{{backend}}: healthy"),
                    Query(
                        "min by (backend) (starpruner_backend_probes_up{%} > bool 0)",
                        "{{backend}}: answers probes",
                    ),
                ),
            ),
            Panel(
                "Circuit breakers and drains",
                "1 where a backend is left alone because connections failed, or is given no new sessions.",
                (
                    Query(
                        "max by (backend) (starpruner_backend_breaker_open{%} > bool 0)",
                        "{{backend}}: breaker open",
                    ),
                    Query("max by (backend) (starpruner_backend_draining{%} > bool 0)", "{{backend}}: draining"),
                ),
            ),
            Panel(
                "Failures",
                "Connections and probes a second that a backend failed.",
                (Query(_rate("backend_failures_total", "backend"), "{{backend}}"),),
                "ops",
            ),
            Panel(
                "Connections of backends",
                "Open connections, our own included, and sessions over HTTP.",
                (
                    Query("sum by (backend) (starpruner_backend_connections{%})", "{{backend}}: connections"),
                    Query("sum by (backend) (starpruner_backend_sessions{%})", "{{backend}}: HTTP sessions"),
                ),
                width=12,
            ),
            Panel(
                "Clients",
                "Connected clients, open sessions, and statements that run.",
                (
                    Query("sum(starpruner_connections_open{%})", "connections"),
                    Query("sum(starpruner_sessions_open{%})", "sessions"),
                    Query("sum(starpruner_statements_running{%})", "statements"),
                ),
                width=12,
            ),
        ),
    ),
    (
        "The proxy itself",
        (
            Panel(
                "Saturation",
                "What is taken of connections, slots of key queries and memory for calls, at the fullest.",
                tuple(
                    Query(f"max(starpruner_{taken}{{%}} / starpruner_{limit}{{%}})", name)
                    for taken, limit, name in (
                        ("connections_open", "connections_max", "connections"),
                        ("backend_connections", "backend_connections_max", "connections of a backend"),
                        ("key_query_slots_taken", "key_query_slots_max", "key queries"),
                        ("held_bytes", "held_bytes_max", "memory for calls"),
                    )
                ),
                "percentunit",
            ),
            Panel(
                "Refused logins",
                "Logins that were refused: of clients, and at the admin port.",
                (
                    Query(
                        "sum by (door, reason) (increase(starpruner_logins_refused_total{%}[$__rate_interval]))",
                        "{{door}}: {{reason}}",
                    ),
                ),
            ),
            Panel(
                "Statements lost to the history and to traces",
                "Statements that went their way, and are missing from the history, or whose spans were not taken.",
                (
                    Query(
                        "sum by (reason) (increase(starpruner_history_lost_total{%}[$__rate_interval]))",
                        "history: {{reason}}",
                    ),
                    Query("sum(increase(starpruner_traces_lost_total{%}[$__rate_interval]))", "traces"),
                ),
            ),
            Panel(
                "Memory",
                "Of all processes of a proxy.",
                (Query("sum by (instance) (process_resident_memory_bytes{%})", "{{instance}}"),),
                "bytes",
            ),
            Panel(
                "Memory that was short",
                "Statements that went on unanalysed, moments in which no client was read, refusals, and long "
                "replies that waited.",
                (
                    Query(
                        "sum by (result) (increase(starpruner_memory_short_total{%}[$__rate_interval]))",
                        "{{result}}",
                    ),
                ),
            ),
            Panel(
                "Processor",
                "Processor seconds a second.",
                (
                    Query(
                        "sum by (instance) (rate(process_cpu_seconds_total{%}[$__rate_interval]))", "{{instance}}"
                    ),
                ),
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana reads it."""
    return {
        "uid": "starpruner",
        "title": "Starpruner",
        "description": "Statements that Starpruner rewrote for Spark Thrift Server, and those that it left.",
        "tags": ["starpruner", "spark"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "schemaVersion": _SCHEMA_VERSION,
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": list(_panels()),
    }


def expressions() -> Iterator[str]:
    """The expressions of all panels."""
    for _, panels in ROWS:
        for panel in panels:
            yield from (query.text for query in panel.queries)


def _variables() -> list[dict[str, Any]]:
    chosen = {"text": ["All"], "value": ["$__all"]}
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        *(
            {
                "name": name,
                "label": label,
                "type": "query",
                "datasource": _DATASOURCE,
                "query": f"label_values(starpruner_connections_open{within}, {name})",
                "refresh": 2,
                "multi": True,
                "includeAll": True,
                "current": chosen,
            }
            for name, label, within in (("job", "Job", ""), ("instance", "Proxy", '{job=~"$job"}'))
        ),
    ]


def _panels() -> Iterator[dict[str, Any]]:
    number, x, y = 1, 0, 0
    for title, panels in ROWS:
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1},
            "panels": [],
        }
        number, x, y, row_height = number + 1, 0, y + 1, 0
        for panel in panels:
            height = _STAT_HEIGHT if panel.kind == "stat" else _HEIGHT
            if x + panel.width > _COLUMNS:
                x, y = 0, y + row_height
            yield _panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": height})
            number, x, row_height = number + 1, x + panel.width, height
        y += row_height


def _panel(panel: Panel, number: int, position: dict[str, int]) -> dict[str, Any]:
    is_of_range = panel.kind != "timeseries"
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": position,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _DATASOURCE,
                "expr": query.text,
                "legendFormat": query.legend or "__auto",
                "instant": is_of_range,
                "range": not is_of_range,
            }
            for place, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _field_defaults(panel), "overrides": []},
        "options": _options(panel.kind),
    }


def _field_defaults(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit} | ({} if panel.signed else {"min": 0})
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        defaults["custom"] = {"fillOpacity": 20 if panel.stacked else 0, "stacking": stacking}
    else:
        defaults |= {"decimals": 1} if panel.unit == "percentunit" else {"decimals": 0}
    return defaults


def _options(kind: str) -> dict[str, Any]:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    match kind:
        case "stat":
            return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "none", "textMode": "value"}
        case "bargauge":
            return {"reduceOptions": reduced, "orientation": "horizontal", "displayMode": "basic"}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


def texts() -> dict[Path, str]:
    """The file, and its copy."""
    made = dashboard()
    return {FILE: f"{json.dumps(made, indent=2)}\n", COPY: f"{json.dumps(made, separators=(',', ':'))}\n"}


def main(_: Sequence[str]) -> None:
    """Write the file, and its copy."""
    for file, text in texts().items():
        file.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{file.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
