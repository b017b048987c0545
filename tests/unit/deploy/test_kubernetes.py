"""The Kubernetes example says the same as docker-compose.yml, drains, and holds no secret."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from adsserver.running.server import DRAIN_LIMIT_S
from controlplane.config.loading import load
from controlplane.config.variables import MEANINGS
from tests.support.compose import compose_document

FOLDER = Path(__file__).parents[3] / "deploy" / "kubernetes"
POLLING = FOLDER / "polling" / "kustomization.yaml"
SERVICES = {"prepare": "migrate", "web": "web", "worker": "worker", "beat": "beat", "ads": "ads"}
SECRETS = {"DATABASE_URL", "REDIS_URL", "PARLEY_ENCRYPTION_KEYS", "PARLEY_SECRET_KEY", "PARLEY_ADMIN_PASSWORD"}
# Of these the files have another place, or the example leaves the default.
ELSEWHERE = {"PARLEY_ADS_TLS_CERT", "PARLEY_ADS_TLS_KEY", "PARLEY_TRUSTED_PROXIES", "PARLEY_MAIL_URL", "PARLEY_WEBHOOK_ALLOW"}  # fmt: skip  # noqa: E501
ELSEWHERE |= {"PARLEY_SECOND_FACTOR", *(name for name in MEANINGS if name.startswith("PARLEY_OIDC_"))}

Object = dict[str, Any]


@cache
def objects() -> list[Object]:
    files = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    return [each for name in files for each in yaml.safe_load_all((FOLDER / name).read_text())]


@cache
def _compose() -> Object:
    return compose_document()


def of(kind: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in objects() if each["kind"] == kind}


def pod_of(name: str) -> Object:
    workload = {**of("Deployment"), **of("Job")}[name]
    return dict(workload["spec"]["template"]["spec"])


def container_of(name: str) -> Object:
    (container,) = pod_of(name)["containers"]
    return dict(container)


def variables_of(name: str) -> set[str]:
    container = container_of(name)
    shared = of("ConfigMap")["parley"]["data"] if "envFrom" in container else {}
    return {*shared, *(each["name"] for each in container["env"])}


def test_kustomization__files__are_all_that_are_there() -> None:
    named = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]

    assert {file.name for file in FOLDER.iterdir()} == {*named, "kustomization.yaml", POLLING.parent.name}


@pytest.mark.parametrize(("name", "service"), SERVICES.items())
def test_container__command_and_variables__are_those_of_compose(name: str, service: str) -> None:
    compose = _compose()["services"][service]
    container = container_of(name)

    assert container.get("command") == compose.get("entrypoint")
    assert container["args"] == compose["command"]
    assert variables_of(name) - ELSEWHERE == set(compose["environment"]) - ELSEWHERE


@pytest.mark.parametrize("name", SERVICES)
def test_container__that_has_the_database__has_its_keys_and_no_other_has_them(name: str) -> None:
    assert ("PARLEY_ENCRYPTION_KEYS" in variables_of(name)) == ("DATABASE_URL" in variables_of(name))


@pytest.mark.parametrize("name", SERVICES)
def test_container__rights__are_none(name: str) -> None:
    pod, container = pod_of(name), container_of(name)

    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]) == (10001, True)
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} <= container["resources"].keys()


@pytest.mark.parametrize("name", SERVICES)
def test_secret__in_a_container__is_a_reference(name: str) -> None:
    for each in container_of(name)["env"]:
        assert (each["name"] in SECRETS) == ("valueFrom" in each)
        if each["name"] in SECRETS:
            assert each["valueFrom"] == {"secretKeyRef": {"name": "parley", "key": each["name"]}}
    assert "Secret" not in {each["kind"] for each in objects()}


@pytest.mark.parametrize("name", ["web", "ads"])
def test_service_and_budget__of_what_people_and_clients_reach__select_its_pods(name: str) -> None:
    deployment = of("Deployment")[name]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (port, *_) = of("Service")[name]["spec"]["ports"]

    assert of("Service")[name]["spec"]["selector"] == labels
    assert of("PodDisruptionBudget")[name]["spec"]["selector"]["matchLabels"] == labels
    assert port["targetPort"] in {each["name"] for each in container_of(name)["ports"]}
    assert deployment["spec"]["replicas"] >= 2
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_ads__end_of_a_pod__leaves_time_to_drain() -> None:
    (_, pause) = container_of("ads")["lifecycle"]["preStop"]["exec"]["command"]

    assert pod_of("ads")["terminationGracePeriodSeconds"] > int(pause) + DRAIN_LIMIT_S


def test_configuration__of_the_example__is_accepted(tmp_path: Path) -> None:
    told = of("ConfigMap")["parley"]["data"] | {"PARLEY_ADS_METRICS_ADDRESS": "0.0.0.0:9102"}
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).touch()
    files = {"PARLEY_ADS_TLS_CERT": str(tmp_path / "tls.crt"), "PARLEY_ADS_TLS_KEY": str(tmp_path / "tls.key")}

    config = load(told | files, directory=tmp_path)

    assert str(config.ads_address) == told["PARLEY_ADS_ADDRESS"]
    assert config.public_url == told["PARLEY_PUBLIC_URL"]


def patched() -> dict[str, Object]:
    """The objects that the component for polls changes, by their kinds, with its patches (RFC 6902) applied."""
    found: dict[str, Object] = {}
    for each in yaml.safe_load(POLLING.read_text())["patches"]:
        kind, name = each["target"]["kind"], each["target"]["name"]
        found[kind] = deepcopy(of(kind)[name])
        for step in yaml.safe_load(each["patch"]):
            assert step["op"] == "add"
            *way, last = step["path"].removeprefix("/").split("/")
            target: Any = found[kind]
            for part in way:
                target = target[int(part) if isinstance(target, list) else part]
            if isinstance(target, list):
                assert last == "-"
                target.append(step["value"])
            else:
                target[last] = step["value"]
    return found


def test_polling__named_as_a_component__tells_every_process_and_opens_the_port(tmp_path: Path) -> None:
    assert "PARLEY_ADS_REST_ADDRESS" not in of("ConfigMap")["parley"]["data"]
    objects = patched()
    told = objects["ConfigMap"]["data"]
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    (_, port) = objects["Service"]["spec"]["ports"]
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).touch()
    files = {"PARLEY_ADS_TLS_CERT": str(tmp_path / "tls.crt"), "PARLEY_ADS_TLS_KEY": str(tmp_path / "tls.key")}

    config = load(told | files, directory=tmp_path)

    assert {each["name"]: each["containerPort"] for each in container["ports"]}[port["targetPort"]] == 18080
    assert config.rest_address is not None
    assert (config.rest_address.port, port["port"]) == (18080, 18080)
    assert str(config.rest_public_address) == "parley.example.com:18080"
