"""docker-compose.yml keeps the specification and our rules, and says the same as the supervisor."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from controlplane.config.home import Home
from controlplane.config.loading import load
from controlplane.ops.supervisor.programs import WEB, WORKER, programs
from tests.support.compose import REST, MissingVariableError, compose_document, interpolated, one_shot, problems

Document = dict[str, Any]


def test_compose__as_it_is__keeps_every_rule() -> None:
    assert problems(compose_document()) == []


def test_compose__with_the_port_for_polls__keeps_every_rule_and_tells_who_reads_it() -> None:
    without, document = compose_document()["services"], compose_document(REST)
    told = {name: each.get("environment", {}) for name, each in document["services"].items()}
    readers = {name for name, environment in told.items() if "PARLEY_ADS_REST_ADDRESS" in environment}

    assert problems(document) == []
    assert readers == {name for name, environment in told.items() if "PARLEY_ADS_ADDRESS" in environment}
    assert {told[name].pop("PARLEY_ADS_REST_ADDRESS") for name in readers} == {"0.0.0.0:18080"}
    assert document["services"]["ads"]["ports"].pop() == "${PARLEY_ADS_REST_PUBLISH:-127.0.0.1:18080-18081}:18080"
    assert document["services"] == without  # off by default, and nothing else is changed


def test_compose__services__are_those_of_the_architecture() -> None:
    services = compose_document()["services"]

    assert set(services) == {"migrate", "web", "worker", "beat", "ads", "postgres", "redis"}
    assert [name for name, service in services.items() if one_shot(service)] == ["migrate"]


def _service(name: str, **changes: object) -> Callable[[Document], None]:
    return lambda document: document["services"][name].update(changes)


def _environment(name: str, **changes: str) -> Callable[[Document], None]:
    return lambda document: document["services"][name]["environment"].update(changes)


def _without(*path: str) -> Callable[[Document], None]:
    def remove(document: Document) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return remove


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_service("web", reastart="always"), "schema: $.services.web"),
        (_service("web", ports=[{"target": "x"}]), "schema: $.services.web.ports"),
        (_without("services", "beat"), "beat is missing"),
        (_without("services", "ads", "healthcheck"), "ads: runs on and has no health check"),
        (_service("redis", healthcheck={"disable": True}), "redis: runs on and has no health check"),
        (_service("ads", deploy={"replicas": 1}), "ads: not two replicas"),
        (_service("ads", container_name="ads"), "ads: has a fixed name"),
        (_without("services", "postgres", "user"), "postgres: has no user"),
        (_service("web", user="0:0"), "web: has no user"),
        (_service("web", user="parley"), "web: has no user"),
        (_service("worker", cap_add=["NET_ADMIN"]), "worker: keeps capabilities"),
        (_service("worker", security_opt=[]), "worker: may gain privileges"),
        (_service("worker", read_only=False), "worker: can change its image"),
        (_service("web", privileged=True), "web: reaches into the host"),
        (_service("web", network_mode="host"), "web: reaches into the host"),
        (_service("redis", image="valkey/valkey:latest"), "redis: has an image"),
        (_service("redis", image="valkey/valkey"), "redis: has an image"),
        (_environment("postgres", POSTGRES_PASSWORD="hunter2"), "postgres: POSTGRES_PASSWORD is not left to .env"),
        (_environment("web", PARLEY_SECRET_KEY="${KEY:-default}"), "web: PARLEY_SECRET_KEY is not left to .env"),
        (_environment("web", PARLEY_SECRET_KEY="${KEY:-}"), "web: PARLEY_SECRET_KEY is not left to .env"),
        (_environment("web", PARLEY_OIDC_CLIENT_SECRET="x"), "web: PARLEY_OIDC_CLIENT_SECRET is not left to .env"),
        (
            _environment("web", PARLEY_OIDC_CLIENT_SECRET="${KEY:-default}"),
            "web: PARLEY_OIDC_CLIENT_SECRET is not left to .env",
        ),
        (_environment("web", DATABASE_URL="postgres://parley:pw@postgres/parley"), "web: DATABASE_URL holds"),
        (_environment("beat", REDIS_URL="redis://:${REDIS_PASSWORD:-pw}@redis:6379/0"), "beat: REDIS_URL holds"),
        (_environment("ads", PARLEY_INSECURE="1"), "ads: sets PARLEY_INSECURE"),
        (_environment("ads", PARLEY_ADS_AUTH="none"), "ads: serves every interface"),
        (_without("services", "ads", "environment", "PARLEY_ADS_TLS_KEY"), "ads: takes tokens over a connection"),
        (_service("postgres", ports=["5432:5432"]), "postgres: publishes 5432:5432"),
        (_service("web", ports=["8000:8000"]), "web: publishes 8000:8000 beyond this machine"),
        (_service("worker", command=["worker", "--beat"]), "worker: runs a beat"),
        (_service("redis", networks=["data", "edge"]), "redis: is on a network with a way out"),
        (_without("services", "postgres", "volumes"), "postgres: keeps its data in no volume"),
        (_without("volumes", "home"), "volume home is used and not declared"),
    ],
)
def test_compose__one_thing_spoilt__is_refused(spoil: Callable[[Document], None], said: str) -> None:
    document = deepcopy(compose_document())

    spoil(document)

    assert any(problem.startswith(said) for problem in problems(document)), problems(document)


def test_compose__without_env__says_what_to_run() -> None:
    for name in ("migrate", "web", "worker", "beat", "ads", "postgres"):
        with pytest.raises(MissingVariableError, match=r"run deploy/compose/prepare\.sh first"):
            interpolated(compose_document()["services"][name], {})


def test_compose__web_and_worker__are_started_as_the_supervisor_does(tmp_path: Path) -> None:
    config = load({"PARLEY_WEB_ADDRESS": "0.0.0.0:8000"}, directory=tmp_path)
    supervised = {each.name: each.command for each in programs(config, Home(tmp_path), worker_processes=2)}
    services = compose_document()["services"]

    def said(name: str) -> list[str]:
        return [*services[name]["entrypoint"], *services[name]["command"]]

    assert said("web")[1:] == list(supervised[WEB][1:])
    embedded_beat = ("--beat", "--schedule", str(tmp_path / "run" / "beat.schedule"))
    assert said("worker")[1:] == [word for word in supervised[WORKER][1:] if word not in embedded_beat]


def test_compose__files_and_scripts_it_mounts_or_runs__exist() -> None:
    root = Path(__file__).parents[3]
    checks = [
        service["healthcheck"]["test"]
        for service in compose_document()["services"].values()
        if "healthcheck" in service
    ]

    named = {word for check in checks for word in check if str(word).endswith(".py")}

    assert named == {"deploy/docker/healthcheck.py"}
    assert all((root / name).is_file() for name in named)
