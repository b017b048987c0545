"""What deploy/ gives to Prometheus and Grafana: whom to scrape, and what rules and panels ask for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import promql_parser
import yaml

from tests.support.compose import compose_document

ROOT: Final = Path(__file__).resolve().parents[2]
DEPLOY: Final = ROOT / "deploy"
DASHBOARD: Final = json.loads((DEPLOY / "grafana/parley.json").read_text())
RULES: Final = yaml.safe_load((DEPLOY / "prometheus/parley.rules.yml").read_text())["groups"][0]["rules"]


class Target(NamedTuple):
    """A name that stands for processes, and the port of each that is scraped."""

    job: str
    name: str
    port: int


def targets(file: str) -> list[Target]:
    """The targets of a scrape configuration of deploy/prometheus."""
    document: Mapping[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / file).read_text())
    return [
        Target(scrape["job_name"], name, found["port"])
        for scrape in document["scrape_configs"]
        for found in scrape["dns_sd_configs"]
        for name in found["names"]
    ]


def of_compose(target: Target) -> str:
    """The service of docker-compose.yml that a target names; its processes listen on that port."""
    service = compose_document()["services"][target.name]
    assert f"0.0.0.0:{target.port}" in service["environment"].values()
    assert not any(str(target.port) in str(port) for port in service.get("ports", ())), "published"
    return target.name


def of_kubernetes(target: Target) -> str:
    """The role of deploy/kubernetes whose pods, all of them, a target's name stands for; they have that port."""
    name, namespace, kind = target.name.split(".")
    assert (namespace, kind) == (_kubernetes("kustomization.yaml")[0]["namespace"], "svc")
    (spec,) = [each["spec"] for each in _kubernetes("metrics.yaml") if each["metadata"]["name"] == name]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    role = str(spec["selector"]["app.kubernetes.io/component"])
    (pod,) = [each["spec"]["template"] for each in _kubernetes(f"{role}.yaml") if each["kind"] == "Deployment"]
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"]["labels"] == spec["selector"]
    assert {"name": "metrics", "containerPort": target.port} in container["ports"]
    assert {
        "name": f"PARLEY_{role.upper()}_METRICS_ADDRESS",
        "value": f"0.0.0.0:{target.port}",
    } in container["env"]
    return role


def _kubernetes(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text()))


JOBS: Final = {each.job for each in targets("prometheus.yml")}

QUERIES: Final = {
    **{f"alert {rule['alert']}": rule["expr"] for rule in RULES},
    **{
        f"panel {panel['title']} {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", ())
    },
}


def nodes(query: str) -> list[promql_parser.Expr]:
    """The parts of a query. Raises ValueError when it is no PromQL."""
    found: list[promql_parser.Expr] = []
    promql_parser.walk(promql_parser.parse(query), found.append)
    return found


def selectors(query: str) -> list[tuple[str, list[promql_parser.Matcher]]]:
    """The metrics that a query reads, each with what its labels must be."""
    found = [each for each in nodes(query) if isinstance(each, promql_parser.VectorSelector)]
    return [(each.name or "", each.matchers.matchers) for each in found]
