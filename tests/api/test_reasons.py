"""Why access, groups and environments are changed, in the words of whoever does it; and who did what since when."""

from typing import Any

import pytest

from controlplane.catalog.models import Environment
from controlplane.clients.clock import database_now
from controlplane.clients.identity import client_id
from controlplane.clients.models import Client
from controlplane.journal.models import AuditEvent
from tests.api.conftest import Answer, Caller, assert_problem

HERE = "environments/prod"
GROUP = {"key": "edge", "matchers": [{"node_id": "e-*"}], "trust": "declared"}
RULE = {"pattern": "pay*", "effect": "deny"}

pytestmark = pytest.mark.django_db


def written(api: Caller, answer: Answer) -> str:
    """The message of the change that an answer names."""
    assert answer.status in {200, 201}, answer.content
    message: str = api.get(f"changes/{answer.json['change']}").json["message"]
    return message


def test_message__with_any_write_of_access_and_environments__stands_in_the_change(api: Caller) -> None:
    rule = api.post(f"{HERE}/rules?message=ticket+7", RULE)
    here = f"{HERE}/rules/{rule.json['id']}"
    said = {
        "rule made": written(api, rule),
        "rule changed": written(api, api.patch(f"{here}?message=ticket+7", {"enabled": False})),
        "rule replaced": written(api, api.put(f"{here}?message=ticket+7", RULE)),
        "rule deleted": written(api, api.delete(f"{here}?message=ticket+7")),
        "group made": written(api, api.post(f"{HERE}/client-groups?message=ticket+7", GROUP)),
        "group changed": written(
            api, api.patch(f"{HERE}/client-groups/edge?message=ticket+7", {"matchers": [{"node_id": "x"}]})
        ),
        "group deleted": written(api, api.delete(f"{HERE}/client-groups/edge?message=ticket+7")),
        "environment made": written(api, api.post("environments?message=ticket+7", {"key": "shop"})),
        "environment changed": written(api, api.patch("environments/shop?message=ticket+7", {"quarantine": "off"})),
    }
    api.delete("environments/shop?message=ticket+7")

    assert {what: message.rpartition(": ")[2] for what, message in said.items()} == dict.fromkeys(said, "ticket 7")
    assert said["rule made"].startswith("access rule ")
    gone = AuditEvent.objects.get(verb="environment.deleted")
    assert gone.detail["message"] == "ticket 7"


def test_message__long_one_or_by_the_header__whole_where_it_fits_and_refused_where_not(api: Caller) -> None:
    longest = "w" * 800
    made = api.post(f"{HERE}/rules", {"pattern": f"{'p' * 200}*", "effect": "deny"}, X_Parley_Message=longest)
    before = api.get(f"{HERE}/rules").json["count"]

    assert written(api, made).endswith(f": {longest}")
    assert_problem(api.post(f"{HERE}/rules?message={'w' * 1001}", RULE), 422)
    assert_problem(api.delete(f"{HERE}/rules/{made.json['id']}?mesage=typo"), 422)
    assert api.get(f"{HERE}/rules").json["count"] == before


def test_audit__since__a_time_or_an_age_and_nothing_before_it(api: Caller) -> None:
    api.post(f"{HERE}/rules", RULE)
    between = database_now().isoformat().replace("+00:00", "Z")
    api.post(f"{HERE}/client-groups", GROUP)

    def verbs(query: str) -> list[str]:
        return [each["verb"] for each in api.get(f"audit?environment=prod&{query}").json["results"]]

    assert verbs(f"since={between}") == ["client_group.created"]
    assert verbs("since=1h")[:2] == ["client_group.created", "access_rule.created"]
    assert_problem(api.get("audit?since=yesterday"), 422)


def test_clients__by_identity__that_one_alone_and_of_ones_own_environments(
    api: Caller, as_role: Any, environments: None
) -> None:
    now = database_now()
    for number, key in enumerate(("default", "prod")):
        Client.objects.create(
            id=client_id(environment=key, identity="spiffe://corp/pay", node_id=f"n{number}"),
            environment=Environment.objects.get(key=key),
            identity="spiffe://corp/pay",
            node_id=f"n{number}",
            family="envoy",
            first_seen=now,
            last_seen=now,
        )

    def found(who: Caller, identity: str) -> list[str]:
        return [each["node_id"] for each in who.get(f"clients?identity={identity}").json["results"]]

    assert sorted(found(api, "spiffe://corp/pay")) == ["n0", "n1"]
    assert found(api, "spiffe://corp/pa") == []
    assert found(as_role("viewer", "prod"), "spiffe://corp/pay") == ["n1"]
