"""The pages of clients: who is connected, and what each has of what it asks for."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change, Environment
from controlplane.clients.models import Client as Row
from controlplane.clients.selectors import client_get
from controlplane.database.aliases import READER
from controlplane.explain import beliefs
from controlplane.explain.words import word_take
from tests.services.incidents.fleet import DANA, Fleet, held, rebuild
from tests.support.facts import stream, subscribed
from tests.web.conftest import HOSTILE, assert_harmless, page, queries
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.said import Said, SaidSource, SaidState, Word

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def id_of(node_id: str) -> str:
    return Row.objects.get(node_id=node_id).pk


def test_clients__nobody_yet__says_where_ads_listens(admin: Client) -> None:
    shown = page(admin, "/e/prod/clients")

    assert "No client has connected to prod yet" in shown
    assert "ADS listens on" in shown


def test_clients__a_fleet__listed_with_states_and_counts(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, "/e/default/clients")

    assert shown.index("node-1") < shown.index("node-2")  # the one that refuses comes first
    assert "<b>3</b> all" in shown
    assert f'href="/clients/{id_of("node-3")}"' in shown


def test_clients__filtered__shows_what_fits(admin: Client, fleet: Fleet) -> None:
    asked = {"?q=NODE-1": True, "?q=zzz": False, "?state=gone": False, "?state=refusing": True}

    for question, found in asked.items():
        shown = page(admin, f"/e/default/clients{question}")

        assert (id_of("node-1") in shown) is found, question
        assert ("0 of 3 clients fit" in shown) is not found, question


def test_clients__one_is_told_that_it_may_not_read_what_it_asks_for__does_not_look_well(
    admin: Client, fleet: Fleet
) -> None:
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "led*"), actor=DANA)
    rebuild()
    fleet.buffer.learnt(fleet.streams[1], subscribed("pay", "ledger", "gone"))
    fleet.accept(held("pay", 2), who=slice(1, 3))

    shown = page(admin, "/e/default/clients")
    itself = page(admin, f"/clients/{id_of('node-2')}")

    _, told, well = shown.split('<th scope="row">')[1:]
    assert "1 name denied, 1 not there" in told
    assert "state-bad" in told
    assert ">connected<" not in told
    assert ">connected<" in well
    assert ">denied<" in itself.partition("</h1>")[2].partition("</div>")[0]
    assert id_of("node-2") in page(admin, "/e/default/clients?state=denied")
    home = page(admin, "/")
    assert '<a href="/e/default/clients?state=denied">1 denied</a>' in home
    denied = '<a href="/e/default/clients?state=denied">1 denied</a>'
    assert denied in page(admin, "/e/default/snapshots")
    assert denied in page(admin, f"/e/default/snapshots/{Environment.objects.get(key='default').epoch}")
    change = page(admin, f"/changes/{Change.objects.get(kind='access').public_id}")
    assert "It wrote no resource" in change
    assert ">1 client is denied something now.</a>" in change
    assert "No connected client asked" not in change
    assert '<dl class="numbers">' not in change
    assert re.search(r'by <a href="/e/default/access#rule-\d+">rule \d+</a>', itself)
    found = admin.get("/search?q=xds2103", follow=True).content.decode()
    assert "Clients that are told so now" in found
    assert id_of("node-2") in found
    assert id_of("node-3") not in found


def test_clients__one_acknowledged_what_stands_in_for_what_it_refused__still_refuses(
    admin: Client, fleet: Fleet
) -> None:
    fleet.accept(held("pay", 1), who=slice(1))

    shown = page(admin, "/e/default/clients?q=node-1")
    found = page(admin, "/search?q=node-&kind=client")

    assert ">refusing<" in shown.partition("<tbody>")[2]
    assert ">connected<" not in shown.partition("<tbody>")[2]
    assert found.count(">refusing<") == 1
    assert "<b>1</b>" in shown.partition('href="?state=refusing"')[2].partition("</a>")[0]
    assert id_of("node-1") in page(admin, "/e/default/clients?state=refusing")
    assert '<a href="/e/default/clients?state=refusing">1</a>' in page(admin, "/")


def test_client__in_groups__both_pages_name_them_and_the_timeline_its_last_answers(admin: Client, fleet: Fleet) -> None:
    sure = GroupDraft("edge", (Selector(node_id="node-2"),), Trust.DECLARED)
    perhaps = GroupDraft("europe", (Selector(node_id="node-*", metadata={"zone": "eu"}),), Trust.DECLARED)
    for draft in (sure, perhaps):
        group_create(environment_key="default", draft=draft, actor=DANA)
    fleet.accept(held("pay", 2), who=slice(1, 2))

    listed = page(admin, "/e/default/clients?q=node-2")
    itself = page(admin, f"/clients/{id_of('node-2')}")

    assert "in edge" in listed
    assert "<b>edge</b>" in itself
    assert "(perhaps europe: its metadata is not kept)" in itself
    timeline = itself.partition('<ol class="timeline"')[2].partition("</ol>")[0]
    assert [timeline.count(f">{word}<") for word in ("response", "ACK", "connected")] == [1, 1, 1]


def test_client__that_refused__shows_the_state_of_each_name_and_its_own_words(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, f"/clients/{id_of('node-1')}")

    assert "1 name needs attention" in shown
    assert "NACKED" in shown
    row = shown.partition('<table class="table table-cards names">')[2].partition("</tr>")[2].partition("</tr>")[0]
    assert '<td data-label="Has">r1</td><td data-label="Published">r2' in row
    assert "It refused r2." in row
    assert "nothing: all of this is what it says of itself" in shown
    assert "&lt;img src=x" in shown
    assert "&quot;ads_config&quot;" in shown  # the bootstrap of an Envoy
    assert 'href="/e/default/setup?family=envoy&amp;node_id=node-1"' in shown
    assert_harmless(shown)


def test_client__names_nobody_published__shows_the_text_it_was_told(admin: Client, fleet: Fleet) -> None:
    fleet.buffer.learnt(fleet.streams[1], subscribed("pay", f"gone {HOSTILE}"))
    fleet.write()

    shown = page(admin, f"/clients/{id_of('node-2')}")

    assert "It was told why it does not get this." in shown
    assert "NOT_FOUND [XDS2101]" in shown
    assert_harmless(shown)


def test_client__that_left__says_when_and_that_nothing_more_can_be_seen(admin: Client, fleet: Fleet) -> None:
    fleet.buffer.closed(fleet.streams[2], "the client went away")
    fleet.write()

    shown = page(admin, f"/clients/{id_of('node-3')}")

    assert "<span>gone</span>" in shown.partition("<h1")[2].partition("</div>")[0]
    assert "What it runs now cannot be seen" in shown


def test_client__with_a_hostile_name__is_shown_and_not_run(admin: Client, fleet: Fleet) -> None:
    one = stream(77, node_id=HOSTILE, user_agent=HOSTILE, identity=f"spiffe://corp/{HOSTILE}")
    fleet.buffer.opened(one)
    fleet.write()

    row = Row.objects.get(identity__startswith="spiffe")
    for path in (f"/clients/{row.pk}", "/e/default/clients"):
        assert_harmless(page(admin, path))


def test_client__of_an_environment_one_may_not_see__is_unknown(person: Callable[..., Client], fleet: Fleet) -> None:
    stranger = person(Role.VIEWER, "prod")

    refused = page(stranger, f"/clients/{id_of('node-1')}", 404)

    assert "There is no client" in refused
    assert "node-1" not in refused
    assert page(stranger, "/clients/nobody", 404)
    assert page(stranger, "/e/default/clients", 404)


def test_pages_of_clients__many_more_clients__no_more_queries(admin: Client, fleet: Fleet) -> None:
    paths = ("/e/default/clients", f"/clients/{id_of('node-1')}")
    few = [queries(admin, path) for path in paths]
    for number in range(100, 170):
        fleet.buffer.opened(stream(number))
        fleet.buffer.learnt(stream(number), subscribed(wildcard=True))
    fleet.write()

    assert [queries(admin, path) for path in paths] == few
    # Four of them ask the newest snapshot who refuses, is denied, or is denied a secret; two are the picture's.
    assert max(few) <= 25


def test_client__its_own_word__stands_beside_what_parley_believes_with_since(
    admin: Client, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beliefs, "SETTLED_AFTER", timedelta(minutes=-1))  # nothing counts as having just moved
    client = client_get(public_id=id_of("node-2"))
    said = Said("cluster", "pay", SaidState.NACKED, held=True, version=held("pay", 1).content.version, error=HOSTILE)
    fleet.accept(held("pay", 2), who=slice(1, 2))
    before = page(admin, f"/clients/{client.id}")

    word_take(client=client, word=Word(SaidSource.CSDS, "", frozenset({"cluster"}), (said,)), by="token:side-car")

    shown, listed = page(admin, f"/clients/{client.id}"), page(admin, "/e/default/clients")
    assert "Nobody reported it." in before
    part = shown.partition('id="said"')[2].partition("</section>")[0]
    assert re.search(r"It agrees with Parley in\s+<b>\d of \d</b>", part)
    assert "by its CSDS" in part
    assert 'Brought by <span class="foreign">token:side-car</span>' in part
    assert "It refuses an update and has r1; Parley believes it took r2." in part
    assert 'data-label="Since"><time' in part
    assert f'href="/x?e=default&amp;t=cluster&amp;n=pay&amp;c={client.id}"' in part
    assert_harmless(shown)
    assert f'<a href="/clients/{client.id}#said">says itself: 1 differs</a>' in listed
