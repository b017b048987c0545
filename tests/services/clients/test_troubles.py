"""Who refuses and who is denied, asked again and again: what a process remembers never outlives what it is about."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.builder.services import build
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Environment
from controlplane.catalog.services import change_apply, environment_create
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.clients.identity import client_id
from controlplane.clients.troubles import troubles_of
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.facts import stream, subscribed
from tests.support.manifests import cluster, parsed
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


def of(node: str, environment: str = "default") -> str:
    return client_id(environment=environment, identity="", node_id=node)


def refusing() -> frozenset[str]:
    return troubles_of(environment_keys=["default", "prod"]).refusing


def denied() -> frozenset[str]:
    return troubles_of(environment_keys=["default", "prod"]).denied


def rule(effect: Effect, pattern: str, *groups: str, losing: int = 0) -> None:
    draft, consent = RuleDraft(effect, pattern, client_groups=groups), Consent(accept_loss=losing)
    rule_create(environment_key="default", draft=draft, actor=DANA, consent=consent)
    rebuild()


@pytest.fixture
def refused(database: str) -> Fleet:
    """Three clients; the second refused the newest 'pay' and acknowledged what stands in for it."""
    three = Fleet(3)
    publish(cluster("pay"))
    three.accept(held("pay", 1))
    publish(cluster("pay", connect_timeout="2s"))
    response = three.send(held("pay", 2))
    three.refuse(response, "no such file", suspects=(held("pay", 2),), who=slice(1, 2))
    three.accept(held("pay", 1))
    return three


@pytest.fixture
def asking(database: str) -> Fleet:
    """Three clients that ask for the same two names."""
    three = Fleet(3)
    publish(cluster("pay"), cluster("ledger"))
    for each in three.streams:
        three.buffer.learnt(each, subscribed("pay", "ledger"))
    three.write()
    return three


def test_refusing__content_is_replaced_and_comes_back__is_as_published(refused: Fleet) -> None:
    seen = [refusing()]
    publish(cluster("pay", connect_timeout="3s"))
    seen.append(refusing())
    publish(cluster("pay", connect_timeout="2s"))
    seen.append(refusing())

    assert seen == [{of("node-2")}, frozenset(), {of("node-2")}]


def test_refusing__content_is_hidden_from_who_refused_it__is_not_its_trouble(refused: Fleet) -> None:
    before = refusing()

    rule(Effect.HIDE, "pay", losing=3)

    assert before == {of("node-2")}
    assert refusing() == frozenset()


def test_denied__rules_come_one_by_one__each_counts_from_its_snapshot_on(asking: Fleet) -> None:
    group = GroupDraft("second", (Selector(node_id="node-2"),), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=DANA)
    seen = [denied()]
    for pattern, groups, losing in (("other*", (), 0), ("led*", ("second",), 1), ("*", (), 3)):
        rule(Effect.DENY, pattern, *groups, losing=losing)
        seen.append(denied())

    everybody = {of(f"node-{number}") for number in (1, 2, 3)}
    assert seen == [frozenset(), frozenset(), {of("node-2")}, everybody]


def test_denied__same_names_and_clients_in_two_environments__each_is_judged_by_its_own_rules(asking: Fleet) -> None:
    environment_create(key="prod", policy=EnvironmentPolicy(default_effect=Effect.ALLOW), actor=DANA)
    change_apply(environment_key="prod", edits=[Put(parsed(cluster("pay")))], actor=DANA, message="why")
    build(environment_id=Environment.objects.get(key="prod").pk)
    other = stream(9, node_id="node-1", environment="prod")
    asking.buffer.opened(other)
    asking.buffer.learnt(other, subscribed("pay", "ledger"))
    asking.write()
    before = denied()

    rule(Effect.DENY, "led*", losing=3)

    assert before == frozenset()
    assert denied() == {of(f"node-{number}") for number in (1, 2, 3)}
    assert troubles_of(environment_keys=["prod"]).denied == frozenset()
    assert troubles_of(environment_keys=["default"], client=of("node-3")).denied == {of("node-3")}


def test_troubles__asked_again__no_list_and_no_chunk_is_read_again(refused: Fleet) -> None:
    rule(Effect.DENY, "led*")
    refused.buffer.learnt(refused.streams[0], subscribed("ledger"))
    refused.write()
    first = troubles_of(environment_keys=["default"])

    with CaptureQueriesContext(connection) as queries:
        again = troubles_of(environment_keys=["default"])

    read = {name for query in queries.captured_queries for name in re.findall(r'FROM "(\w+)"', query["sql"])}
    assert first == again
    assert first.denied == {of("node-1")}
    assert read.isdisjoint({"clients_contentlist", "clients_nameset"})
    assert len(queries) <= 6
