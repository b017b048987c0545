"""Why a client does, or does not, have a resource: the twelve situations, from what real fact buffers wrote."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.guarding import Consent
from controlplane.catalog.services import change_apply, environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.clients.clock import database_now
from controlplane.clients.models import HoldingMove, Subscription
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.facts import acknowledged, respond, stream, subscribed
from tests.support.manifests import cluster, endpoints, parsed, route, tls_secret
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"


@pytest.fixture
def environments() -> None:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)


@pytest.fixture
def api(environments: None) -> Caller:
    return caller(*ADMIN_SCOPES)


@pytest.fixture
def fleet(environments: None) -> Fleet:
    """Two clients that ask for every cluster."""
    return Fleet(2)


def asked(api: Caller, name: str = "pay", *, client: str = "node-1", word: str = "cluster", more: str = "") -> Any:
    answer = api.get(f"explain?environment=default&type={word}&name={name}&client={client}{more}")
    assert answer.status == 200, answer.content
    return answer.json


def states(document: Any) -> str:
    """The first letter of each rung's state, in order: o, f, u, s."""
    assert [rung["number"] for rung in document["rungs"]] == [1, 2, 3, 4, 5, 6, 7, 8]
    return "".join(rung["state"][0] for rung in document["rungs"])


def rung(document: Any, number: int) -> str:
    return str(document["rungs"][number - 1]["text"])


def ruled(effect: Effect, pattern: str, *groups: str, losing: int, message: str = "") -> str:
    """Make a rule by which as many clients lose something; how sentences call it."""
    draft = RuleDraft(effect, pattern, client_groups=groups, message=message)
    made = rule_create(environment_key="default", draft=draft, actor=SYSTEM, consent=Consent(accept_loss=losing))
    return f"Rule {made.id}"


def test_explain__served_and_acknowledged__yes(api: Caller, fleet: Fleet) -> None:
    change = publish(cluster("pay"))
    fleet.accept(held("pay", 1))

    document = asked(api)

    assert (document["answer"], document["code"], states(document)) == ("yes", "", "oooooooo")
    assert document["sentence"].startswith("Cluster 'pay' is served in 'default', version ")
    assert (document["next"], document["told"]) == ([], "")
    assert "r1, written by dana" in rung(document, 4)
    hrefs = {link["title"]: link["href"] for link in document["links"]}
    assert hrefs["change"] == f"/api/v1/changes/{change}"
    for href in hrefs.values():
        assert api.get(href.removeprefix("/api/v1/")).status == 200


def test_explain__denied_to_its_group__no_with_the_rule_and_the_text_clients_read(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"))
    group = GroupDraft("second", (Selector(node_id="node-2"),), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=SYSTEM)
    rule = ruled(Effect.DENY, "pay*", "second", losing=1, message="ask the payments team")
    rebuild()
    fleet.accept(held("pay", 1), who=slice(1))

    first, second = asked(api), asked(api, client="node-2")

    assert (first["answer"], second["answer"], second["code"]) == ("yes", "no", "XDS2103")
    assert second["sentence"].startswith(f"{rule} denies Cluster 'pay'.")
    assert states(second) == "oooofssu"
    assert "groups: second" in rung(second, 2)
    assert asked(api, "pay-never", client="node-2")["sentence"].startswith(f"{rule} denies Cluster 'pay-never'.")
    assert second["told"].startswith("PERMISSION_DENIED [XDS2103] This client may not read Cluster 'pay': ask the pay")


@pytest.mark.parametrize("default", ["allow", "deny"])
def test_explain__secret_that_no_rule_names__no_in_definite_words_whatever_the_default_and_whether_it_is_there(
    api: Caller, fleet: Fleet, default: str
) -> None:
    api.patch("environments/default", {"default_effect": default})
    ruled(Effect.ALLOW, "*", losing=0)
    publish(tls_secret("key", "first"))

    there, absent = asked(api, "key", word="secret"), asked(api, "no-such-key", word="secret")

    for document, name in ((there, "key"), (absent, "no-such-key")):
        assert (document["answer"], document["code"], states(document)[4]) == ("no", "XDS2103", "f")
        assert document["sentence"] == (
            f"No rule that names the type secret allows Secret '{name}'; the default of 'default' never covers secrets."
        )
        assert document["next"] == ["If this is not meant, propose a rule that allows it and names the type secret."]
        assert document["told"].startswith(
            f"PERMISSION_DENIED [XDS2103] This client may not read Secret '{name}': no access rule that names the type "
            "secret allows it."
        )
    assert states(there)[3] == "o"  # operators may know that it is there


def test_explain__hidden__no_and_clients_are_told_it_was_never_published(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"))
    rule = ruled(Effect.HIDE, "pay", losing=2)
    rebuild()

    document = asked(api)

    assert (document["answer"], document["code"]) == ("no", "XDS2101")
    assert document["sentence"].startswith(f"{rule} hides Cluster 'pay'")
    assert document["told"].startswith("NOT_FOUND [XDS2101]")
    assert "Rule" not in document["told"]


def test_explain__never_published__no_with_near_names(api: Caller, fleet: Fleet) -> None:
    publish(cluster("payments"))

    document = asked(api, "paymentz")

    assert (document["answer"], document["code"]) == ("no", "XDS2101")
    assert document["sentence"] == "Nobody has published Cluster 'paymentz' in 'default'. Closest: 'payments'."


def test_explain__deleted__no_with_who_did_it(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"), cluster("other"))
    change = publish(delete=("pay",), losing=2)

    document = asked(api)

    assert (document["answer"], document["code"]) == ("no", "XDS2102")
    assert document["sentence"].startswith("Cluster 'pay' was removed from 'default' by dana at ")
    assert change in document["sentence"]


def test_explain__withheld_by_a_finding__no_with_the_finding(api: Caller, fleet: Fleet) -> None:
    publish(route("edge", "nowhere"))

    document = asked(api, "edge", word="route")

    assert (document["answer"], document["code"], states(document)) == ("no", "XDS2106", "ooffossu")
    assert "RouteConfiguration 'edge' is withheld: XDS2002: " in document["sentence"]
    assert "nowhere" in document["sentence"]


def test_explain__quarantined_without_a_proven_revision__no(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"))
    fleet.refuse(fleet.send(held("pay", 1)), BAD, suspects=(held("pay", 1),))
    digest()
    quarantined(api)

    document = asked(api)

    assert (document["answer"], document["code"]) == ("no", "XDS2106")
    assert "Cluster 'pay' is withheld: XDS5001" in document["sentence"]


def quarantined(api: Caller) -> None:
    (incident,) = api.get("incidents").json["results"]
    assert api.post(f"incidents/{incident['id']}/quarantine", {"reason": "breaks pay"}).status == 202
    rebuild()


def refused(fleet: Fleet) -> None:
    """Both clients run r1; the first refused r2."""
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), kept=(held("pay", 1),), who=slice(1))
    digest()


def test_explain__quarantined_with_a_proven_revision__yes_and_says_what_is_held_back(api: Caller, fleet: Fleet) -> None:
    refused(fleet)
    quarantined(api)
    fleet.accept(held("pay", 1))

    document = asked(api)

    assert document["answer"] == "yes"
    assert "The newer r2 is in quarantine." in rung(document, 4)


def test_explain__refused__no_with_its_own_words_and_the_incident(api: Caller, fleet: Fleet) -> None:
    refused(fleet)
    (incident,) = api.get("incidents").json["results"]

    document = asked(api)

    assert (document["answer"], document["code"], states(document)) == ("no", "", "oooooofo")
    assert document["sentence"].endswith(BAD)
    assert f"/api/v1/incidents/{incident['id']}" in [link["href"] for link in document["links"]]
    assert asked(api, client="node-2")["answer"] == "no"  # sent r2, and has not answered


def test_explain__refused_by_name_with_another__no_for_both_although_the_rest_was_accepted_later(
    api: Caller, fleet: Fleet
) -> None:
    publish(cluster("pay"), cluster("ledger"), cluster("web"))
    pay, ledger, web = (held(name, 1) for name in ("pay", "ledger", "web"))
    both = "Error adding/updating cluster(s) pay: no such file, ledger: no such file"
    fleet.refuse(fleet.send(pay, ledger, web), both, suspects=(pay, ledger))
    fleet.accept(web)

    assert [asked(api, name)["answer"] for name in ("pay", "ledger", "web")] == ["no", "no", "yes"]


def test_explain__not_subscribed__no_with_what_it_asks_for(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"), cluster("pay2"))
    other = stream(9)
    fleet.buffer.opened(other)
    fleet.buffer.learnt(other, subscribed("pay2"))
    fleet.write()

    document = asked(api, client="node-9")

    assert (document["answer"], states(document)) == ("no", "oofoossu")
    assert "does not ask for cluster 'pay'. Closest that it asks for: 'pay2'." in document["sentence"]


def test_explain__disconnected__cannot_know(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    fleet.buffer.closed(fleet.streams[0], "gone")
    fleet.write()

    document = asked(api)

    assert (document["answer"], states(document)) == ("unknown", "oouoossu")
    assert "no open stream" in document["sentence"]
    assert asked(api, "nothing")["answer"] == "no"  # it would not be served either


def test_explain__client_of_another_environment__no_to_whoever_sees_both(
    api: Caller, fleet: Fleet, as_viewer: Callable[[str], Caller]
) -> None:
    publish(cluster("pay"))
    change_apply(environment_key="prod", edits=[Put(parsed(cluster("only-prod")))], actor=DANA)
    elsewhere = stream(8, node_id="p-1", environment="prod")
    fleet.buffer.opened(elsewhere)
    fleet.write()

    document = asked(api, client="p-1")
    narrow = as_viewer("default").get("explain?type=cluster&name=pay&client=p-1")
    unknown = as_viewer("default").get("explain?type=cluster&name=pay&client=x-1")
    (identity,) = [each["id"] for each in api.get("clients?node_id=p-1").json["results"]]

    assert (document["answer"], states(document)) == ("no", "ofsoosss")
    assert document["sentence"] == "This client belongs to 'prod', not to 'default'."
    assert "Environments that hold it: 'prod'." in asked(api, "only-prod")["sentence"]
    assert_problem(narrow, 404)
    assert_problem(as_viewer("default").get(f"explain?type=cluster&name=pay&client={identity}"), 404)
    assert narrow.json["detail"] == unknown.json["detail"].replace("x-1", "p-1")
    assert b"prod" not in as_viewer("default").get("explain?type=cluster&name=only-prod").content.replace(
        b"only-prod", b""
    )


@pytest.fixture
def as_viewer() -> Callable[[str], Caller]:
    return lambda environment: caller(Scope(Role.VIEWER, environment))


def test_explain__nothing_built_yet__cannot_know_and_never_no(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"), built=False)

    document = asked(api)

    assert (document["answer"], document["code"]) == ("unknown", "XDS2105")
    assert document["told"] == ""


def test_explain__rule_for_a_group_by_metadata__goes_by_what_the_client_was_sent_once_it_was(
    api: Caller, fleet: Fleet
) -> None:
    publish(cluster("pay"))
    group = GroupDraft("canary", (Selector(metadata={"tier": "canary"}),), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=SYSTEM)
    rule = ruled(Effect.DENY, "pay", "canary", losing=2)
    rebuild()

    before = asked(api)
    fleet.accept(held("pay", 1))
    after = asked(api)

    assert (before["answer"], before["code"]) == ("unknown", "")
    assert f"{rule} speaks of 'canary'" in before["sentence"]
    assert (after["answer"], after["code"], states(after)[4]) == ("yes", "", "o")
    assert f"{rule} speaks of 'canary'" in after["rungs"][4]["text"]


def test_explain__saved_and_not_built__says_that_it_waits(api: Caller, fleet: Fleet) -> None:
    publish(cluster("other"))
    publish(cluster("pay"), built=False)

    assert "waits for a build" in asked(api)["sentence"]


def test_explain__at_an_earlier_epoch__by_the_snapshot_of_then(api: Caller, fleet: Fleet) -> None:
    publish(cluster("other"))
    publish(cluster("pay"))
    ruled(Effect.DENY, "other", losing=2)
    rebuild()

    assert asked(api, more="&at=1")["answer"] == "no"
    assert (asked(api, more="&at=2")["answer"], states(asked(api, more="&at=2"))) == ("yes", "oosoosss")
    assert (asked(api, "other", more="&at=2")["answer"], asked(api, "other")["answer"]) == ("yes", "no")
    assert_problem(api.get("explain?type=cluster&name=pay&at=99"), 404)


def test_explain__no_client__answers_for_the_name(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"))

    document = asked(api, client="")

    assert (document["answer"], states(document)) == ("yes", "sosoosss")


def test_explain__client_id__is_the_same_as_its_node_id(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay"))
    (found,) = api.get("clients?node_id=node-1").json["results"]

    assert asked(api, client=found["id"])["rungs"] == asked(api)["rungs"]


def test_explain__unknown_client__404_with_similar_ones(api: Caller, fleet: Fleet) -> None:
    answer = api.get("explain?type=cluster&name=pay&client=node-11")

    assert_problem(answer, 404)
    assert answer.json["detail"].startswith("'default' never saw a client 'node-11', or not within a day. Similar: ")


def test_explain__acknowledged_before_the_revision_was_written__not_sent_yet(api: Caller, fleet: Fleet) -> None:
    response = respond()
    for each in fleet.streams:
        fleet.buffer.sent(each, response)
        fleet.buffer.learnt(each, acknowledged(response))
    fleet.write()
    publish(cluster("pay"))

    document = asked(api)

    assert (document["answer"], states(document)[5]) == ("no", "f")
    assert "r1 was not sent to it yet" in document["sentence"]


def test_explain__acknowledged_half_a_minute_ago_and_not_in_use__yes_and_says_what_it_did_not_ask_for(
    api: Caller, fleet: Fleet
) -> None:
    eds = {"eds_config": {"ads": {}, "resource_api_version": "V3"}, "service_name": "pay-hosts"}
    publish(cluster("pay", type="EDS", eds_cluster_config=eds), endpoints("pay-hosts", 80))
    fleet.accept(held("pay", 1))
    at_once = asked(api)
    Subscription.objects.update(held_at=database_now() - timedelta(seconds=31))
    HoldingMove.objects.update(at=database_now() - timedelta(seconds=31))

    document = asked(api)

    assert "does not use it" not in rung(at_once, 8)
    assert document["answer"] == "yes"
    assert rung(document, 8) == "It has it and does not use it yet: it has not asked for endpoint 'pay-hosts'."


@pytest.mark.parametrize(
    "query", ["", "type=cluster", "name=pay", "type=x&name=pay", "type=cluster&name=", "type=cluster&name=a&at=0"]
)
def test_explain__question_that_is_none__422(api: Caller, query: str) -> None:
    assert_problem(api.get(f"explain?{query}"), 422)
