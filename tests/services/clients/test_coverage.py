"""How many clients run the newest revision of a resource: of this one, whatever else its responses held."""

from dataclasses import replace

import pytest

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.catalog.guarding import Consent
from controlplane.clients.coverage import Coverage, coverage_of
from controlplane.clients.holdings import resource_holders
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild, revision
from tests.support.facts import acknowledged, subscribed
from tests.support.manifests import cluster
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def fleet(database: str) -> Fleet:
    """Three clients that run r1 of `pay` and `ledger`; the first refused r2 of `pay`, the others took it."""
    three = Fleet(3)
    publish(cluster("pay"), cluster("ledger"))
    three.accept(held("pay", 1), held("ledger", 1))
    publish(cluster("pay", connect_timeout="2s"))
    sent = three.send(held("pay", 2), held("ledger", 1))
    three.refuse(sent, "pay: no", suspects=(held("pay", 2),), who=slice(1))
    for stream in three.streams[1:]:
        three.buffer.learnt(stream, acknowledged(sent))
    three.write()
    return three


def coverage(name: str, number: int) -> Coverage:
    key = ("cluster", name)
    return coverage_of(environment_key="default", versions={key: revision(name, number).version})[key]


def test_coverage__one_client_refused_one_of_two_resources__that_one_alone_is_refused(fleet: Fleet) -> None:
    assert coverage("pay", 2) == Coverage(asking=3, running=2, nacked=1)
    assert coverage("ledger", 1).nacked == 0


def test_coverage__refusing_client_acknowledges_what_stands_in__does_not_run_the_newest(fleet: Fleet) -> None:
    fleet.accept(held("ledger", 1))

    assert coverage("pay", 2).nacked == 1
    _, holders = resource_holders(environment_key="default", key=("cluster", "pay"))
    assert {row.node_id: row.state.value for row in holders.rows} == {
        "node-1": "NACKED",
        "node-2": "ACKED",
        "node-3": "ACKED",
    }


def test_coverage__mended__nobody_refuses_the_newest(fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="3s"))
    fleet.accept(held("pay", 3), held("ledger", 1))

    assert coverage("pay", 3) == Coverage(asking=3, running=3, nacked=0)


def test_coverage__denied_client_asks_by_name__is_told_so_and_does_not_run_it(fleet: Fleet) -> None:
    # `node-3` asks by name for what it may not read, `node-2` for everything, of which that is no part.
    matchers = (Selector(node_id="node-2"), Selector(node_id="node-3"))
    group_create(environment_key="default", draft=GroupDraft("guests", matchers, Trust.DECLARED), actor=DANA)
    draft = RuleDraft(Effect.DENY, "led*", client_groups=("guests",))
    rule_create(environment_key="default", draft=draft, actor=DANA, consent=Consent(accept_loss=2))
    rebuild()
    fleet.accept(held("ledger", 1), who=slice(1))
    taken_away = fleet.send(to=fleet.streams[1:2])
    fleet.buffer.learnt(fleet.streams[1], replace(acknowledged(taken_away), removed=("ledger",)))
    fleet.buffer.learnt(fleet.streams[2], subscribed("pay", "ledger"))
    response = fleet.send(held("pay", 2), to=[fleet.streams[2]])
    fleet.buffer.learnt(fleet.streams[2], acknowledged(response))
    fleet.write()

    assert coverage("ledger", 1) == Coverage(asking=2, running=1, nacked=0, denied=1)
    assert coverage("pay", 2) == Coverage(asking=3, running=2, nacked=1)
