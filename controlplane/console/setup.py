"""The setup guide: from an empty environment to the first client, ticking while it connects (texts.md section 7)."""

import json
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.builder.condition import BUILDS, builder_state
from controlplane.builder.deep.envoy import lack_here
from controlplane.builder.selectors import last_unchecked
from controlplane.catalog.selectors import EnvironmentState, counts_by_environment, environment_list
from controlplane.clients.bootstraps import (
    NAMED_FILES,
    ClientFiles,
    UnreachableError,
    Variant,
    envoy_bootstrap,
    files_named,
    grpc_bootstrap,
    grpc_variables,
    node_for,
    path_problem,
)
from controlplane.clients.browsing import Standing, client_page, standing_counts
from controlplane.clients.selectors import replica_list
from controlplane.clients.troubles import Troubles, troubles_of
from controlplane.config.loading import Config
from controlplane.console.clients import looks_of
from controlplane.console.live import shared
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from xdscore.codes import shown
from xdscore.names import name_problem
from xdscore.server_features import CRITERIA, BootstrapFeature

_FAMILIES: Final = {"envoy": "Envoy", "grpc": "gRPC"}
_DEFAULT_NODE: Final = "my-first-client"
_NEWEST: Final = 5
_FILES: Final = {
    "certificate_file": "Its certificate",
    "private_key_file": "Its key",
    "ca_certificate_file": "Who signs the server's certificate",
}


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the setup guide: whether it is done, and a text about how far it is."""

    label: str
    done: bool
    says: str


class SetupPage(Page):
    """The page that guides through setting up one environment."""

    template = "setup/guide.html"

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """The guide; with `?part=ticks`, only the part that is refreshed while the page is open: which lines are
        done.
        """
        if request.GET.get("part") == "ticks":
            live = shared(f"setup/{self.here.id}", lambda: _live(self.here))
            return self.part("setup/ticks.html", {**live, "environment": self.here})
        family = request.GET.get("family", "")
        family = family if family in _FAMILIES else "envoy"
        node_id = request.GET.get("node_id", "").strip() or _DEFAULT_NODE
        features = request.GET.getlist("server_features")
        config: Config = settings.PARLEY
        paths = {name: request.GET.get(name, "") or getattr(NAMED_FILES, name) for name in files_named(config)}
        text, problem = _bootstrap(environment_key, family, node_id, features, paths)
        context = {
            **_live(self.here),
            "families": tuple(_FAMILIES.items()),
            "family": family,
            "node_id": node_id,
            "features": tuple((each.value, why, each.value in features) for each, why in CRITERIA.items()),
            "files": tuple((name, _FILES[name], file) for name, file in paths.items()),
            "variables": grpc_variables(config),
            "bootstrap": text,
            "problem": problem,
            "ads_address": str(config.ads_public_address),
            "auth": config.ads_auth.facts,
            "deep": _deep(self.here, config),
        }
        return self.page(context)


def _deep(environment: EnvironmentState, config: Config) -> dict[str, object]:
    """The template values of the offer of deep validation: whether it is on, what this machine lacks for it, and what
    the last build could not check.
    """
    on, lack = environment.policy.deep_validation, lack_here(config.envoy_binary)
    return {
        "on": on,
        "lack": lack.value if lack is not None else "",
        "unchecked": last_unchecked(environment_id=environment.id) if on else "",
    }


def _live(environment: EnvironmentState) -> dict[str, object]:
    troubles = troubles_of(environment_keys=[environment.key])
    ticks = _ticks(environment, troubles)
    newest = client_page(environment_keys=[environment.key], limit=_NEWEST, troubles=troubles)[0]
    return {"ticks": ticks, "newest": looks_of(newest), "done": all(tick.done for tick in ticks)}


def _ticks(environment: EnvironmentState, troubles: Troubles) -> tuple[Tick, ...]:
    key = environment.key
    builder = builder_state()
    published = environment.epoch > 0 and environment.generation == environment.built_generation
    replicas = [each for each in replica_list() if not each.stopped]
    resources = counts_by_environment().get(key, 0)
    standing = standing_counts(environment_keys=[key], troubles=troubles)[key]
    connected = sum(standing.values()) - standing[Standing.GONE]
    content = standing[Standing.CONNECTED]
    return (
        Tick("Something is written", resources > 0, f"{resources} resource{'s' if resources != 1 else ''}"),
        Tick(
            "It is published",
            published,
            f"snapshot {environment.epoch}" if published else builder if builder != BUILDS else "in a moment",
        ),
        Tick("ADS runs", bool(replicas), f"{len(replicas)} process{'es' if len(replicas) != 1 else ''}"),
        Tick("A client is connected", connected > 0, f"{connected} connected"),
        Tick(
            "A client accepts what it is sent",
            content > 0,
            _well(content, connected),
        ),
    )


def _bootstrap(
    environment_key: str, family: str, node_id: str, features: list[str], paths: dict[str, str]
) -> tuple[str, str]:
    """The bootstrap file and an empty text; or an empty text and what is wrong, where none can be made. `features`: of
    gRPC alone; `paths`: of the client's certificate files.
    """
    if problem := name_problem(node_id):
        return "", f"The node id {problem}."
    allowed = [each.value for each in BootstrapFeature]
    if strange := next((each for each in features if each not in allowed), None):
        return "", f"There is no server feature '{shown(strange)}'. There are: {', '.join(allowed)}."
    for name, file in paths.items():
        if problem := path_problem(file):
            return "", f"{_FILES[name]}: the path {problem}."
    config: Config = settings.PARLEY
    files = ClientFiles(**paths)
    try:
        node = node_for(config, node_id, environment_key, tuple(state.choice for state in environment_list()))
    except UnreachableError as error:
        return "", str(error)
    if family == "envoy":
        tree = envoy_bootstrap(config, node, Variant.SOTW, files=files)
    else:
        tree = grpc_bootstrap(config, node, files=files, features=[BootstrapFeature(each) for each in features])
    return json.dumps(tree, indent=2), ""


def _well(content: int, connected: int) -> str:
    """How many of the connected clients have everything they ask for, in words. `content`: how many have."""
    if connected and not content:
        return "none does: each refuses, is silent or is denied"
    return f"{content} of {connected}"


urlpatterns = [
    path("e/<str:environment_key>/setup", SetupPage.as_view(), name="setup"),
]
PLACES = (Place(Section.ADMINISTRATION, 50, "Setup guide", "plug", "setup"),)
