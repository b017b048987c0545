"""Requests made from the schema, sent as three roles: what comes back is what the schema says, and no fault of ours.

The suite sends the same few each time; `make api-search` sends many that nobody tried yet.
"""

import logging
import os
from collections import Counter
from typing import Any, Final

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict
from schemathesis import APIOperation, Case, CheckFunction, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.accounts.services import api_token_create
from controlplane.api.views.schema import schema
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.conftest import caller
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

ROLES: Final = ("viewer", "editor", "admin")
EXAMPLES: Final = int(os.environ.get("API_EXAMPLES", "0"))  # for each operation; 0: a few, the same each time
CONFORMS: Final[list[CheckFunction]] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
# What is deleted early would not be there for others.
ORDER: Final = ("get", "post", "put", "patch", "delete")


@pytest.fixture
def things() -> dict[str, str | int]:
    """One of everything that a path can name, by the name of the path's parameter."""
    environment_default_ensure()
    fleet = Fleet(2)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), "bad", suspects=(held("pay", 2),), who=slice(1))
    digest()
    api = caller(*ADMIN_SCOPES)
    here = "environments/default"
    case = {"node_id": "n", "type": "cluster", "name": "pay", "expect": "allow"}
    route_case = {"name": "pays", "authority": "shop.example", "expect": {"answer": "refused"}}
    group = {"key": "all", "matchers": [{"node_id": "*"}], "trust": "declared"}
    assert api.post(f"{here}/client-groups", group).status == 201
    made = {
        "rule_id": api.post(f"{here}/rules", {"pattern": "x*", "effect": "hide"}),
        "case_id": api.post(f"{here}/access/cases", case),
        "route_case_id": api.post(f"{here}/requests/cases", route_case),
        "channel_id": api.post("channels", {"name": "ops", "kind": "webhook", "target": "https://hooks.example/in"}),
        "change_id": api.post(f"{here}/apply", {"resources": [cluster("cart")]}),
    }
    return {
        **{name: answer.json["id"] for name, answer in made.items()},
        "client_id": str(api.get("clients").json["results"][0]["id"]),
        "incident_id": str(api.get("incidents").json["results"][0]["id"]),
        "environment_key": "default",
        "type": "cluster",
        "name": "pay",
        "group_key": "all",
        "epoch": 1,
        "revision": 1,
        "family": "envoy",
        "code": "XDS2101",
    }


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 120)
def test_every_operation__generated_requests_as_three_roles__answered_as_the_schema_says(
    things: dict[str, str | int], subtests: pytest.Subtests
) -> None:
    described = schemathesis.openapi.from_dict(schema())
    described.app = get_wsgi_application()
    tokens = [api_token_create(name=role, scopes=(Scope(Role(role), None),), actor=SYSTEM)[1] for role in ROLES]
    operations = [each.ok() for each in described.get_all_operations() if isinstance(each, Ok)]

    met: Counter[int] = Counter()
    for operation in sorted(operations, key=lambda each: ORDER.index(each.method.lower())):
        with subtests.test(operation=operation.label):
            met += _statuses(operation, things, tokens)

    logging.getLogger(__name__).warning("answers by status: %s", sorted(met.items()))
    assert {200, 403, 404, 422} <= met.keys()
    assert met.total() >= len(operations) * len(ROLES)


def _statuses(
    operation: APIOperation[Any, Any, Any, Any], things: dict[str, str | int], tokens: list[str]
) -> Counter[int]:
    """Send requests that the operation's description allows, and some that it forbids; count what comes back."""
    met: Counter[int] = Counter()
    ways = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @settings(
        max_examples=EXAMPLES or 2,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        # What is sent twice meets another state of things, so that nothing is gained by making it smaller.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(ways), st.booleans())
    def send(case: Case[Any], to_what_is_there: bool) -> None:
        if to_what_is_there:
            known = {name: things[name] for name in case.path_parameters if name in things}
            case.path_parameters = {**case.path_parameters, **known}
        for token in tokens:
            case.headers = CaseInsensitiveDict({**case.headers, "Authorization": f"Bearer {token}"})
            response = case.call()
            case.validate_response(response, checks=CONFORMS)
            met[response.status_code] += 1

    send()
    return met
