"""docker-compose.yml, read as compose reads it, and the rules that it must keep."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema import Draft201909Validator

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "docker-compose.yml"
REST: Final = ROOT / "deploy" / "compose" / "rest.yml"
SCHEMA: Final = Path(__file__).with_name("compose-spec.json")

Service = dict[str, Any]

_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\})")
# What names a secret, and what only names a file.
_SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|ENCRYPTION_KEYS|CREDENTIAL")
_REQUIRED = re.compile(r"\$\{\w+:\?[^}]+\}")
# A secret that there need not be: of `.env`, or none at all.
_OPTIONAL = re.compile(r"\$\{\w+:-\}")
_NEED_NOT_BE = frozenset({"PARLEY_OIDC_CLIENT_SECRET"})
_URL_PASSWORD = re.compile(r"://[^/@]*:(?P<password>\$\{[^}]*\}|[^@/]*)@")


class MissingVariableError(Exception):
    """A variable that compose insists on; the text is what compose would print."""


def compose_document(*others: Path) -> dict[str, Any]:
    """The compose file with its anchors resolved, and with others beside it (`--file`), before any variable is
    replaced.
    """
    found: dict[str, Any] = {}
    for file in (FILE, *others):
        found = _merged(found, yaml.safe_load(file.read_text(encoding="utf-8")))
    return found


def _merged(value: Any, other: Any) -> Any:
    """A value with another beside it, as compose merges files: maps by key, lists one behind the other."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {**value, **{key: _merged(value[key], each) if key in value else each for key, each in other.items()}}
    return [*value, *other] if isinstance(value, list) and isinstance(other, list) else other


def interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    """`value` with `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `$$` replaced. Raises MissingVariableError."""
    if isinstance(value, dict):
        return {key: interpolated(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [interpolated(each, variables) for each in value]
    return _VARIABLE.sub(lambda found: _replaced(found, variables), value) if isinstance(value, str) else value


def env_file(text: str) -> dict[str, str]:
    """The variables of a `.env` file with this text."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def problems(document: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a compose file, by the specification's rules and by our own."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    found = [
        f"schema: {error.json_path}: {error.message}" for error in Draft201909Validator(schema).iter_errors(document)
    ]
    if found:
        return found  # what follows reads a well-formed file
    for name, service in document["services"].items():
        found += [f"{name}: {problem}" for rule in _RULES for problem in rule(name, service)]
    found += _whole(document)
    return found


def one_shot(service: Service) -> bool:
    """Whether a service is one that ends by itself."""
    return service.get("restart") == "no"


def _replaced(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if found[0] == "$$":
        return "$"
    value = variables.get(found["name"], "")
    if value or found["kind"] is None:
        return value
    if found["kind"] == "?":
        raise MissingVariableError(f"{found['name']}: {found['rest']}")
    return str(found["rest"])


def _health(_name: str, service: Service) -> Iterator[str]:
    check = service.get("healthcheck", {})
    if not one_shot(service) and (not check.get("test") or check.get("disable")):
        yield "runs on and has no health check"


def _rights(_name: str, service: Service) -> Iterator[str]:
    uid, _, gid = str(service.get("user", "")).partition(":")
    if not uid.isdecimal() or not gid.isdecimal() or int(uid) == 0 or int(gid) == 0:
        yield "has no user in numbers other than root's"
    if service.get("cap_drop") != ["ALL"] or service.get("cap_add"):
        yield "keeps capabilities"
    if "no-new-privileges:true" not in service.get("security_opt", []):
        yield "may gain privileges"
    if service.get("read_only") is not True:
        yield "can change its image"
    if service.get("privileged") or {"network_mode", "pid", "ipc", "devices"} & service.keys():
        yield "reaches into the host"


def _image(_name: str, service: Service) -> Iterator[str]:
    tag = str(service.get("image", "")).rpartition("/")[2].partition(":")[2]
    if not tag or tag == "latest":
        yield "has an image without a tag that says which"


def _secrets(_name: str, service: Service) -> Iterator[str]:
    for variable, value in service.get("environment", {}).items():
        left = _REQUIRED.fullmatch(str(value)) or (variable in _NEED_NOT_BE and _OPTIONAL.fullmatch(str(value)))
        if _SECRET_NAME.search(variable) and not left:
            yield f"{variable} is not left to .env"
        password = _URL_PASSWORD.search(str(value))
        if password and not _REQUIRED.fullmatch(password["password"]):
            yield f"{variable} holds a password"


def _ports(name: str, service: Service) -> Iterator[str]:
    for port in service.get("ports", []):
        if name not in {"web", "ads"}:
            yield f"publishes {port}"
        elif not re.match(r"\$\{\w+:-127\.0\.0\.1:", str(port)):
            yield f"publishes {port} beyond this machine by default"


def _single(_name: str, service: Service) -> Iterator[str]:
    if "container_name" in service:
        yield "has a fixed name and cannot be scaled"


def _safety(_name: str, service: Service) -> Iterator[str]:
    environment = service.get("environment", {})
    if "PARLEY_INSECURE" in environment:
        yield "sets PARLEY_INSECURE"
    if "PARLEY_ADS_ADDRESS" in environment and environment.get("PARLEY_ADS_AUTH") != "token":
        yield "serves every interface to clients that show no token"
    if "PARLEY_ADS_ADDRESS" in environment and not {"PARLEY_ADS_TLS_CERT", "PARLEY_ADS_TLS_KEY"} <= environment.keys():
        yield "takes tokens over a connection that others can read"


def _whole(document: Mapping[str, Any]) -> list[str]:
    services: dict[str, Service] = document["services"]
    found = [
        f"{name} is missing" for name in ("web", "worker", "beat", "ads", "postgres", "redis") if name not in services
    ]
    if found:
        return found
    if services["ads"].get("deploy", {}).get("replicas") != 2:
        found.append("ads: not two replicas")
    if not {"-B", "--beat"}.isdisjoint(services["worker"]["command"]):
        found.append("worker: runs a beat of its own")
    internal = {name for name, network in document["networks"].items() if (network or {}).get("internal")}
    found += [
        f"{name}: is on a network with a way out"
        for name in ("postgres", "redis")
        if not _only_on(services[name], internal)
    ]
    kept = [
        str(each).partition(":")[0]
        for service in services.values()
        for each in service.get("volumes", [])
        if isinstance(each, str)
    ]
    found += [f"volume {name} is used and not declared" for name in kept if name not in document["volumes"]]
    if "postgres" not in kept:
        found.append("postgres: keeps its data in no volume")
    return found


def _only_on(service: Service, networks: set[str]) -> bool:
    joined = set(service.get("networks", []))
    return bool(joined) and joined <= networks


_RULES: Final[tuple[Callable[[str, Service], Iterator[str]], ...]] = (
    _health,
    _rights,
    _image,
    _secrets,
    _ports,
    _single,
    _safety,
)
