"""What no Envoy has read of what is only tried: said with the reason and the way out, and never as an error."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.accounts.principal import Role, Scope
from controlplane.builder.models import Build, BuildOutcome
from controlplane.catalog.models import Environment
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import environment_update
from controlplane.catalog.values import finding_to_json
from controlplane.common.limits import Limit
from tests.api.conftest import DANA, Caller, caller
from tests.support.manifests import api_listener, cluster, endpoints, listener, route, tls_secret
from xdscore.codes import CATALOGUE

DRY_RUN = "environments/default/apply?dry_run=true"
OFF = "deep validation is off in 'default'"
WHEN_BUILT = "an Envoy is asked when the change is built"
OTHER_TYPES = "an Envoy is asked about clusters, listeners and route configurations only"
NO_ENVOY = "1 resource, because no Envoy is installed beside the worker"


def turn_on() -> None:
    policy = replace(environment_get(key="default").policy, deep_validation=True)
    environment_update(key="default", policy=policy, actor=DANA)


def built(*unchecked: tuple[str, str], outcome: BuildOutcome = BuildOutcome.PUBLISHED) -> None:
    """A build after all others, with a note for each of these names of clusters (empty: for none in particular)."""
    said = [(CATALOGUE["XDS2008"].finding("", problem=problem), name) for name, problem in unchecked]
    Build.objects.create(
        environment=Environment.objects.get(key="default"),
        from_generation=0,
        to_generation=Build.objects.count() + 1,
        outcome=outcome,
        findings=[finding_to_json(each.about("cluster", name) if name else each) for each, name in said],
    )


def by_reason(tried: Any) -> dict[str, list[str]]:
    """The names that no Envoy has read, by reason."""
    return {each["why"]: [resource["name"] for resource in each["resources"]] for each in tried["not_judged"]}


def test_validate__is_about_no_environment__says_that_it_asks_no_envoy_and_who_does(api: Caller) -> None:
    answer = api.post("validate", {"resources": [cluster("a"), cluster("b"), tls_secret("s", "v")]})

    assert answer.json == {
        "valid": True,
        "findings": [],
        "not_judged": [
            {
                "by": "envoy",
                "why": "this check asks none, as it is about no environment",
                "hint": "An environment with `deep_validation` asks one when a change is built "
                "(docs/reference/deep-validation.md).",
                "count": 2,
                "resources": [{"type": "cluster", "name": "a"}, {"type": "cluster", "name": "b"}],
            },
            {"by": "envoy", "why": OTHER_TYPES, "count": 1, "resources": [{"type": "secret", "name": "s"}]},
        ],
    }


@pytest.mark.parametrize("body", [{"resources": []}, {"resources": [{"@type": "nothing"}]}])
def test_validate__nothing_sound_in_it__has_nothing_for_an_envoy(api: Caller, body: object) -> None:
    assert api.post("validate", body).json["not_judged"] == []


def test_dry_run__deep_validation_off__says_so_with_the_way_to_have_it_and_is_no_finding(api: Caller) -> None:
    tried = api.post(DRY_RUN, {"resources": [cluster("a"), endpoints("a", 1)]}).json

    assert by_reason(tried) == {OFF: ["a"], OTHER_TYPES: ["a"]}
    assert "An administrator turns it on" in tried["not_judged"][0]["hint"]
    assert "hint" not in tried["not_judged"][1]
    assert tried["findings"] == []


def test_dry_run__deep_validation_on__says_that_it_is_asked_later_and_what_it_is_never_shown(api: Caller) -> None:
    turn_on()
    lua = listener("lua", "r", 8080)
    code = {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "default_source_code": {}}
    code["default_source_code"] = {"inline_string": "function envoy_on_request(h) end"}
    manager: Any = lua["filter_chains"]
    filters = manager[0]["filters"][0]["typed_config"]["http_filters"]
    filters.insert(0, {"name": "lua", "typed_config": code})
    policy = {"content": {"code": "allow"}}
    api.patch("environments/default", policy)

    tried = api.post(DRY_RUN, {"resources": [cluster("a"), route("r", "a"), api_listener("g", "r"), lua]}).json

    assert by_reason(tried) == {
        WHEN_BUILT: ["a", "r"],
        "an Envoy is not shown it: it is a listener for gRPC clients": ["g"],
        "an Envoy is not shown it: it brings Lua code": ["lua"],
    }
    assert tried["not_judged"][0]["hint"] == "What it refuses is held back then, with its words (XDS2007)."


def test_dry_run__what_is_there_already__is_not_spoken_of(api: Caller) -> None:
    api.post("environments/default/apply", {"resources": [cluster("a")]})
    body = {"resources": [cluster("a")], "delete": [{"type": "cluster", "name": "b"}]}

    assert api.post(DRY_RUN, body).json["not_judged"] == []


def test_dry_run__last_build_had_no_envoy__says_why_to_who_may_read_the_environment(api: Caller) -> None:
    turn_on()
    built(("", NO_ENVOY))
    built(outcome=BuildOutcome.FAILED)
    one_cluster = caller(Scope(Role.EDITOR, "default", (Limit(types=("cluster",), names=("a",)),)))

    told, not_told = (
        each.post(DRY_RUN, {"resources": [cluster("a")]}).json["not_judged"] for each in (api, one_cluster)
    )

    assert told[0]["why"] == not_told[0]["why"] == WHEN_BUILT
    assert f"The last build had no verdict: Not checked by Envoy: {NO_ENVOY}." in told[0]["hint"]
    assert "docs/reference/deep-validation.md" in told[0]["hint"]
    assert "last build" not in not_told[0]["hint"]


def test_dry_run__later_build_or_one_resource_unchecked__says_nothing_of_a_lacking_envoy(api: Caller) -> None:
    turn_on()
    built(("", NO_ENVOY))
    built(("a", "it holds a secret"))

    tried = api.post(DRY_RUN, {"resources": [cluster("a")]}).json

    assert "last build" not in tried["not_judged"][0]["hint"]


def test_dry_run__many_resources__names_the_first_hundred_and_counts_all(api: Caller) -> None:
    tried = api.post(DRY_RUN, {"resources": [cluster(f"c{number:03}") for number in range(130)]}).json

    assert [(each["count"], len(each["resources"])) for each in tried["not_judged"]] == [(130, 100)]
