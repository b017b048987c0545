"""Fields and messages of the Envoy that is pinned, and of no package of generated modules: we take them, as it does."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import TYPE
from tests.support.mutations import Mutation, envoy_refusal
from tests.support.seeds import SEEDS
from xdscore.findings import Finding, Severity
from xdscore.schema import Manifest, parse

EXTENSIONS = TYPE + "envoy.extensions."
TOKEN = {"name": "token", "sds_config": {"path_config_source": {"path": "/dev/null"}}}
OAUTH2 = {
    "token_endpoint": {"cluster": "c", "uri": "https://h/token", "timeout": "3s"},
    "authorization_endpoint": "https://h/authorize",
    "redirect_uri": "https://h/callback",
    "redirect_path_matcher": {"path": {"exact": "/callback"}},
    "signout_path": {"path": {"exact": "/signout"}},
    "credentials": {"client_id": "parley", "token_secret": TOKEN, "hmac_secret": TOKEN},
}
LIMITED = {
    "stat_prefix": "s",
    "token_bucket": {"max_tokens": 9, "fill_interval": "1s"},
    "descriptors": [
        {
            "entries": [{"key": "k", "value": "v"}],
            "token_bucket": {"max_tokens": 1, "fill_interval": "1s"},
            "shadow_mode": True,
        }
    ],
}
AUTHORIZED = {"http_service": {"server_uri": OAUTH2["token_endpoint"], "path_override": "/check"}}
BALANCED = {
    "policies": [
        {
            "typed_extension_config": {
                "name": "wrr",
                "typed_config": {
                    "@type": EXTENSIONS
                    + "load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin",
                    "enable_oob_load_report": True,
                    "oob_reporting_config": {},
                },
            }
        }
    ]
}
REMOTE = {
    "remote_address_match": {
        "descriptor_value": "near",
        "address_matcher": {"ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]},
    }
}


def listener(**of_manager: object) -> dict[str, Any]:
    tree: dict[str, Any] = copy.deepcopy(SEEDS["web"].tree)
    tree["filter_chains"][0]["filters"][0]["typed_config"] |= of_manager
    return tree


def routed(match: dict[str, object] | None = None, **of_route: object) -> dict[str, Any]:
    route = {"match": {"prefix": "/", **(match or {})}, "route": {"cluster": "c"}, **of_route}
    return listener(route_config={"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [route]}]})


def filtered(name: str, message: str, config: dict[str, Any], **more: object) -> dict[str, Any]:
    first = {"name": name, "typed_config": {"@type": EXTENSIONS + "filters.http." + message, **config}}
    router = {"name": "router", "typed_config": {"@type": EXTENSIONS + "filters.http.router.v3.Router"}}
    return listener(http_filters=[first, router], **more)


def matched(input_type: str) -> dict[str, Any]:
    """A matcher of responses by this input."""
    predicate = {
        "single_predicate": {
            "input": {"name": "input", "typed_config": {"@type": TYPE + "envoy.type.matcher.v3." + input_type}},
            "value_match": {"exact": "true"},
        }
    }
    policy = EXTENSIONS + "http.custom_response.local_response_policy.v3.LocalResponsePolicy"
    action = {"name": "answer", "typed_config": {"@type": policy, "status_code": 503}}
    return {"matcher_list": {"matchers": [{"predicate": predicate, "on_match": {"action": action}}]}}


CASES = {
    "RouteMatch.cookies": ("web", routed({"cookies": [{"name": "c", "string_match": {"exact": "x"}}]})),
    "RateLimit.Action.remote_address_match": (
        "web",
        routed(route={"cluster": "c", "rate_limits": [{"actions": [REMOTE]}]}),
    ),
    "OAuth2PerRoute": (
        "web",
        routed(
            typed_per_filter_config={
                "envoy.filters.http.oauth2": {
                    "@type": EXTENSIONS + "filters.http.oauth2.v3.OAuth2PerRoute",
                    "config": OAUTH2,
                }
            }
        ),
    ),
    "HttpService.path_override": ("web", filtered("authz", "ext_authz.v3.ExtAuthz", AUTHORIZED)),
    "LocalRateLimitDescriptor.shadow_mode": (
        "web",
        filtered("limit", "local_ratelimit.v3.LocalRateLimit", LIMITED),
    ),
    "HttpResponseLocalReplyMatchInput": (
        "web",
        filtered(
            "answers",
            "custom_response.v3.CustomResponse",
            {"custom_response_matcher": matched("HttpResponseLocalReplyMatchInput")},
        ),
    ),
    "oob_reporting_config": ("ring", copy.deepcopy(SEEDS["ring"].tree) | {"load_balancing_policy": BALANCED}),
}


def errors(mutation: Mutation) -> list[Finding]:
    return [each for each in parse(Manifest(mutation.manifest)).findings if each.severity is Severity.ERROR]


@pytest.mark.slow
@pytest.mark.parametrize("title", CASES)
def test_newest_field__that_the_pinned_envoy_takes__is_taken(title: str, tmp_path: Path) -> None:
    seed, tree = CASES[title]
    mutation = Mutation(SEEDS[seed], title, tree)

    assert envoy_refusal(mutation, (), tmp_path) == ""
    assert errors(mutation) == []
