"""The Helm chart: what it renders, what it refuses, and that the proxy takes its configuration."""

import copy
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner
from support.helm_chart import CHART, ROOT, Rendering, faults, rendered, run_helm

from proxy.cli import main
from proxy.config.config import Config, load
from proxy.workers.launch import CLOSE_S
from tools import grafana_dashboard, helm_values_schema

FOLDER = Path(__file__).parent
CASES = sorted(path.stem for path in (FOLDER / "values").glob("*.yaml"))
# The oldest one that Chart.yaml allows, and the newest one with a schema.
VERSIONS = ("1.25", kubernetes_validate.latest_version().removesuffix(".0"))


def values(case: str) -> Path:
    return FOLDER / "values" / f"{case}.yaml"


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def rendering(case: str) -> Rendering:
    return rendered(values(case))


def test_helm_finds_nothing_wrong(case: str) -> None:
    told = run_helm("lint", "--strict", CHART, "-f", values(case))
    assert told.returncode == 0, told.stdout + told.stderr


def test_the_chart_is_rendered_as_recorded(case: str, rendering: Rendering, *, updating: bool) -> None:
    golden = FOLDER / "renderings" / f"{case}.yaml"
    if updating:
        golden.write_text(rendering.text, encoding="utf-8")
    assert rendering.text == golden.read_text(encoding="utf-8"), "if it is meant: pytest --update-goldens"


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_every_resource(rendering: Rendering, version: str) -> None:
    assert [fault for resource in rendering.resources for fault in faults(resource, version)] == []


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    deployment = copy.deepcopy(rendered(values("defaults")).only("Deployment"))
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    (fault,) = faults(deployment, VERSIONS[-1])
    assert "readynessProbe" in fault


def test_the_proxy_takes_its_configuration(rendering: Rendering, tmp_path: Path) -> None:
    path = tmp_path / "starpruner.toml"
    path.write_text(rendering.toml, encoding="utf-8")
    checked = CliRunner().invoke(main, ["serve", "--check", "--config", str(path)])
    assert checked.exit_code == 0, checked.output


def test_the_configuration_is_the_one_in_the_values(rendering: Rendering, case: str) -> None:
    config = tomllib.loads(rendering.toml)
    asked = yaml.safe_load(values(case).read_text(encoding="utf-8")) or {}
    for section, keys in asked.get("config", {}).items():
        assert config[section] == keys or keys.items() <= config[section].items()


def test_labels_select_the_pods_of_the_proxy_and_no_other(rendering: Rendering) -> None:
    pod, test_pod = rendering.pod["metadata"]["labels"], rendering.only("Pod")["metadata"]["labels"]
    deployment = rendering.only("Deployment")["spec"]
    selectors = [
        deployment["selector"]["matchLabels"],
        *(service["spec"]["selector"] for service in rendering.of_kind("Service")),
        *(budget["spec"]["selector"]["matchLabels"] for budget in rendering.of_kind("PodDisruptionBudget")),
        *(policy["spec"]["podSelector"]["matchLabels"] for policy in rendering.of_kind("NetworkPolicy")),
        *(
            constraint["labelSelector"]["matchLabels"]
            for constraint in rendering.pod["spec"].get("topologySpreadConstraints", [])
        ),
    ]
    for selector in selectors:
        assert selector.items() <= pod.items()
        assert not selector.items() <= test_pod.items()


def test_prometheus_scrapes_the_admin_service_alone(rendering: Rendering) -> None:
    for monitor in rendering.of_kind("ServiceMonitor"):
        selector = monitor["spec"]["selector"]["matchLabels"]
        (found,) = (
            service
            for service in rendering.of_kind("Service")
            if selector.items() <= service["metadata"]["labels"].items()
        )
        (port,) = found["spec"]["ports"]
        assert [port["name"]] == [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]]


def test_the_admin_port_answers_to_the_names_of_its_service_and_to_those_of_the_values() -> None:
    rendering = rendered(
        values("defaults"),
        'config.admin.hosts=["starpruner.example"]',
        'ingress={"enabled": true, "host": "pages.example"}',
    )
    hosts = tomllib.loads(rendering.toml)["admin"]["hosts"]
    name = next(s["metadata"]["name"] for s in rendering.of_kind("Service") if "admin" in s["metadata"]["name"])
    assert hosts == [
        *(name, f"{name}.default", f"{name}.default.svc", f"{name}.default.svc.cluster.local"),
        "pages.example",
        "starpruner.example",
    ]
    (rule,) = rendering.only("Ingress")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert rule["host"] == "pages.example"
    assert path["backend"]["service"] == {"name": name, "port": {"name": "admin"}}


def test_replicas_share_a_claim_beside_the_file_that_is_each_ones_own() -> None:
    rendering = rendered(values("defaults"), "data.shared.enabled=true")
    claim, spec = rendering.only("PersistentVolumeClaim"), rendering.pod["spec"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    (container,) = spec["containers"]
    paths = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume.pop("name"): volume for volume in copy.deepcopy(spec["volumes"])}
    assert volumes["shared"] == {"persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
    assert "emptyDir" in volumes["data"]
    history = tomllib.loads(rendering.toml)["history"]
    assert history["shared_path"] == paths["shared"]
    assert Path(history["path"]).is_relative_to(paths["data"])
    assert rendering.only("Deployment")["spec"]["strategy"]["type"] == "RollingUpdate"
    assert rendered(values("kept_history")).only("Deployment")["spec"]["strategy"]["type"] == "Recreate"


def test_a_service_account_is_the_one_that_was_asked_for() -> None:
    own, named, none = (
        rendered(values("defaults"), "serviceAccount.create=true"),
        rendered(values("production")),
        rendered(values("defaults")),
    )
    for each in (own, named):
        assert each.pod["spec"]["serviceAccountName"] == each.only("ServiceAccount")["metadata"]["name"]
    assert named.pod["spec"]["serviceAccountName"] == "pruner"
    assert none.pod["spec"]["serviceAccountName"] == "default"
    assert none.of_kind("ServiceAccount") == none.of_kind("Ingress") == []


def test_the_dashboard_is_installed_as_it_is_where_it_is_asked_for() -> None:
    (installed,) = (
        each["data"]["starpruner.json"]
        for each in rendered(values("defaults"), "dashboard.enabled=true").of_kind("ConfigMap")
        if each["metadata"]["labels"].get("grafana_dashboard") == "1"
    )
    assert json.loads(installed) == grafana_dashboard.dashboard()


ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"


@pytest.mark.skipif(not ALERTS.exists(), reason="deploy/prometheus/alerts.yml is not here")
def test_the_alerts_of_the_chart_are_a_copy() -> None:
    copied = (CHART / ALERTS.name).read_text(encoding="utf-8")
    assert copied == ALERTS.read_text(encoding="utf-8"), f"copy {ALERTS} to {CHART}"


def test_the_alerts_are_installed_as_they_are() -> None:
    installed = rendered(values("production")).only("PrometheusRule")["spec"]
    assert installed == yaml.safe_load((CHART / "alerts.yml").read_text(encoding="utf-8"))


def test_every_port_of_a_service_a_probe_or_a_policy_is_one_of_the_pod(rendering: Rendering) -> None:
    (container,) = rendering.pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    named = {container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    for service in rendering.of_kind("Service"):
        for port in service["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    for policy in rendering.of_kind("NetworkPolicy"):
        named |= {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    assert named <= ports.keys()


def test_no_process_is_root_or_writes_to_the_image(rendering: Rendering) -> None:
    for pod in (rendering.pod["spec"], rendering.only("Pod")["spec"]):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}


def test_a_pod_has_the_time_to_drain_and_to_close(rendering: Rendering, tmp_path: Path) -> None:
    path = tmp_path / "starpruner.toml"
    path.write_text(rendering.toml, encoding="utf-8")
    (container,) = rendering.pod["spec"]["containers"]
    lifecycle = container.get("lifecycle", {"preStop": {"exec": {"command": ["sleep", "0"]}}})
    waits_s = int(lifecycle["preStop"]["exec"]["command"][1])
    drain_s = load(path).proxy.drain_s
    assert rendering.pod["spec"]["terminationGracePeriodSeconds"] > waits_s + drain_s + CLOSE_S


@pytest.mark.parametrize(("drain", "seconds"), [("0.5", 26), ("600", 625)])
def test_the_grace_period_follows_from_the_drain(drain: str, seconds: int) -> None:
    spec = rendered(values("defaults"), f"config.proxy.drain_s={drain}").pod["spec"]
    assert spec["terminationGracePeriodSeconds"] == seconds


SHORT = "which would cut what the drain lets finish. Expected at least 45"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("shutdown.terminationGracePeriodSeconds=44", SHORT),
        ("shutdown.terminationGracePeriodSeconds=0", SHORT),
        ("config.proxy.listen=127.0.0.1:10001", "config.proxy.listen is 127.0.0.1:10001, where nothing outside"),
        ("config.admin.listen=localhost:10080", "config.admin.listen is localhost:10080, where nothing outside"),
        ("config.listener[0].listen=127.0.0.1:7", "config.listener is 127.0.0.1:7, where nothing outside"),
        ("config.proxy.listen=", "config.proxy.listen is empty and there is no config.listener"),
        ("config.history.path=/data", "config.history.path is /data, which cannot be written"),
        ("data.claim.enabled=true", "Several tell one another their statements by data.shared"),
        ("ingress.enabled=true", "ingress.enabled needs ingress.host"),
    ],
)
def test_values_that_would_not_work_are_refused_with_a_sentence(setting: str, words: str) -> None:
    told = run_helm("template", "demo", CHART, "--set", setting)
    assert told.returncode != 0
    assert words in told.stderr


WRONG_VALUES = {
    "config.health.password=x": "config.health: Additional property password is not allowed",
    "config.zookeeper.password=x": "config.zookeeper: Additional property password is not allowed",
    "config.admin.users.anna=x": "config.admin: Additional property users is not allowed",
    "config.proxy.drain=1": "config.proxy: Additional property drain is not allowed",
    "config.proxy.workers=many": "config.proxy.workers: Invalid type. Expected: integer, given: string",
    "config.rewrite.mode=fast": "config.rewrite.mode: config.rewrite.mode must be one of the following",
    "replicas=3": "(root): Additional property replicas is not allowed",
    "service.port=10000": "service: Additional property port is not allowed",
}


def test_secrets_and_unknown_or_wrong_values_are_refused_by_their_names() -> None:
    told = run_helm("template", "demo", CHART, *(word for value in WRONG_VALUES for word in ("--set", value)))
    assert told.returncode != 0
    assert [sentence for sentence in WRONG_VALUES.values() if sentence not in told.stderr] == []


def test_values_are_held_to_the_code_as_it_is() -> None:
    now = helm_values_schema.FILE.read_text(encoding="utf-8")
    assert now == helm_values_schema.schema(now), f"make it anew: {helm_values_schema.COMMAND}"


def test_every_object_of_the_schema_is_closed() -> None:
    schema = yaml.safe_load(helm_values_schema.FILE.read_text(encoding="utf-8"))
    assert [path for path in objects_with_keys(schema, "") if not path[1]] == []


def objects_with_keys(node: Any, path: str) -> list[tuple[str, bool]]:
    """Each object that has named properties, and whether it takes no others."""
    if isinstance(node, list):
        return [found for item in node for found in objects_with_keys(item, path)]
    if not isinstance(node, dict):
        return []
    own = [(path, node.get("additionalProperties") is False)] if isinstance(node.get("properties"), dict) else []
    return own + [found for key, value in node.items() for found in objects_with_keys(value, f"{path}/{key}")]


def test_every_value_has_a_default_and_every_default_is_in_the_schema() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = yaml.safe_load(helm_values_schema.FILE.read_text(encoding="utf-8"))
    assert defaults.keys() | {"global"} == schema["properties"].keys()


def test_the_defaults_of_the_chart_are_those_of_the_code() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert defaults["config"]["proxy"]["drain_s"] == Config().proxy.drain_s
    helpers = (CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    assert set(re.findall(r'"listen" "([\d.:]+)"', helpers)) == {Config().proxy.listen, Config().admin.listen}
    assert set(re.findall(r'"drain_s" (\d+)', helpers)) == {f"{Config().proxy.drain_s:g}"}


def test_the_chart_installs_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["appVersion"] == project["version"]
