"""The pages of incidents: what clients refuse, and what operators do about it."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES, Role
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.clients.facts import Serving
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import incident_get
from controlplane.incidents.services import digest
from controlplane.incidents.values import CROWDED, IncidentState
from controlplane.snapshots.models import SnapshotRow
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.manifests import Tree, cluster, parsed, route
from tests.support.principals import somebody
from tests.web.conftest import HOSTILE, USERS, assert_harmless, page, queries

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def publish_as(name: str, tree: Tree) -> str:
    """A change of somebody else."""
    who = somebody(name, ADMIN_SCOPES)
    return change_apply(environment_key="default", edits=[Put(parsed(tree))], actor=who).change_id


def the_id() -> str:
    return str(Incident.objects.get().public_id)


def test_incidents__nobody_refuses__says_so_with_the_number_of_clients(admin: Client) -> None:
    Fleet(2)

    shown = page(admin, "/e/default/incidents")

    assert "No client refuses anything" in shown
    assert "2 clients are connected to <b>default</b>" in shown


def test_incidents__one_open__listed_with_its_impact_and_suspect(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, "/e/default/incidents")

    assert f'href="/incidents/{the_id()}"' in shown
    assert "<b>1</b> of 3" in shown
    assert "by dana" in shown
    assert_harmless(shown)


def test_incidents__filtered__shows_what_fits(admin: Client, fleet: Fleet) -> None:
    asked = {
        "?q=PAY": True,
        "?q=other": False,
        "?state=resolved": False,
        "?type=cluster": True,
        "?type=route": False,
        "?author=dana": True,
        "?author=dan": False,
        "?client=node-1": True,
        "?client=node-2": False,
        "?since=1h": True,
        "?since=1h&author=dana&client=node-1&type=cluster": True,
    }
    unreadable = ("?state=nonsense", "?since=nonsense", "?type=nonsense", "?assignee=nonsense")

    for question, found in asked.items():
        shown = page(admin, f"/e/default/incidents{question}")

        assert (the_id() in shown) is found, question
        assert "Clear filters" in shown, question
    for question in unreadable:
        shown = page(admin, f"/e/default/incidents{question}", 422)

        assert the_id() not in shown, question
        assert "Clear filters" in shown, question
    assert the_id() in page(admin, "/e/default/incidents?page=9x")


def test_incidents__refused_a_day_ago__are_not_of_the_last_hour(admin: Client, fleet: Fleet) -> None:
    Incident.objects.update(last_at=timezone.now() - timedelta(hours=25))

    assert the_id() not in page(admin, "/e/default/incidents?since=24h")
    assert the_id() in page(admin, "/e/default/incidents?since=7d")


def test_incident__opened__says_what_who_and_why(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, f"/incidents/{the_id()}")

    assert 'Cluster <span class="foreign">pay</span> r2 is refused' in shown
    assert "<b>1 of 3</b>" in shown
    assert "Since then: <b>goes on with r1</b> (1 client)." in shown
    assert "it was the only thing new to the client" in shown
    assert "<code>connect_timeout: 2s</code>" in shown
    assert "Quarantine r2" in shown
    assert "&lt;img src=x onerror=alert(1)&gt;\\u202egnp.exe\\x1b[31m" in shown
    assert_harmless(shown)


def test_incident__refused_without_words__says_so_and_shows_no_empty_box(admin: Client) -> None:
    """As by an Envoy that polls over REST."""
    fleet = Fleet(1)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), "", suspects=(held("pay", 2),))
    digest()

    shown = page(admin, f"/incidents/{the_id()}")

    assert "refused without words, code" in shown
    assert "Word for word" not in shown
    assert 'aria-label="The text of the NACK"' not in shown
    for path in ("/e/default/incidents", "/e/default/resource?type=cluster&name=pay"):
        assert "(refused without words)" in page(admin, path)


def test_incident__ten_acknowledged_what_two_refuse__says_why_a_person_decides(admin: Client) -> None:
    Environment.objects.filter(key="default").update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    takers, refusers = Fleet(10), Fleet(2, first=50)
    publish(cluster("pay"))
    takers.accept(held("pay", 1))
    refusers.refuse(refusers.send(held("pay", 1)), "no", suspects=(held("pay", 1),))
    digest()

    shown = page(admin, f"/incidents/{the_id()}")

    assert "<b>Not automatic:</b> 10 clients acknowledged r1; 2 refuse it, so that a person decides." in shown
    assert "Quarantine r1" in shown


def test_incident__of_what_others_need__leads_to_them(admin: Client, fleet: Fleet) -> None:
    publish(*(route(f"edge-{number:02}", "pay") for number in range(12)))

    shown = page(admin, f"/incidents/{the_id()}")

    assert "Needed by" in shown
    assert '?type=route&amp;name=edge-00"' in shown
    assert "and 2 more" in shown
    assert "edge-10" not in shown


def test_incident__quarantined_with_a_reason__is_out_of_service_and_told(admin: Client, fleet: Fleet) -> None:
    path = f"/incidents/{the_id()}"

    answer = admin.post(path, {"action": "quarantine", "reason": "breaks pay"}, follow=True)
    rebuild()

    assert answer.redirect_chain == [(path, 302)]
    assert "Revision r2 is out of service with the next build." in answer.content.decode()
    assert incident_get(public_id=the_id()).quarantined
    shown = page(admin, path)
    assert "r1 is served in its place" in shown
    assert "breaks pay" in shown
    admin.post(path, {"action": "release", "reason": "we need it"})
    assert not incident_get(public_id=the_id()).quarantined


def test_incident__open__offers_to_take_back_the_one_change_to_whoever_may_and_says_that_nobody_looks(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    path, change = f"/incidents/{the_id()}", incident_get(public_id=the_id()).incident.change

    assert f'href="/changes/{change}/undo"' in page(admin, path)
    assert "Nobody looks after it yet." in page(admin, path)
    assert "/undo" not in page(person(Role.VIEWER), path)
    admin.post(path, {"action": "resolved"})
    assert "/undo" not in page(admin, path)
    assert "Nobody looks after it" not in page(admin, path)


def test_incident__quarantine_without_a_usable_reason__changes_nothing(admin: Client, fleet: Fleet) -> None:
    for reason in ("", "   ", "two\nlines", "x" * 401):
        answer = admin.post(f"/incidents/{the_id()}", {"action": "quarantine", "reason": reason})

        assert answer.status_code == 422
        assert "There is a problem" in answer.content.decode()
        assert not incident_get(public_id=the_id()).quarantined


def test_incident__state_chosen__is_taken_and_nonsense_refused(admin: Client, fleet: Fleet) -> None:
    answers = [admin.post(f"/incidents/{the_id()}", {"action": action}) for action in ("nonsense", "acknowledged")]

    assert [answer.status_code for answer in answers] == [422, 302]
    row = Incident.objects.get()
    assert (row.state, row.assignee) == ("acknowledged", "admin")


def test_incident__viewer__sees_it_and_may_not_act(person: Callable[..., Client], fleet: Fleet) -> None:
    viewer = person(Role.VIEWER)

    shown = page(viewer, f"/incidents/{the_id()}")

    assert "needs the role operator" in shown
    assert "<button" not in shown.partition('id="do"')[2].partition("</section>")[0]
    assert viewer.post(f"/incidents/{the_id()}", {"action": "resolved"}).status_code == 403
    assert Incident.objects.get().state == "open"


def test_incident__of_an_environment_one_may_not_see__is_unknown(person: Callable[..., Client], fleet: Fleet) -> None:
    stranger = person(Role.ADMIN, "prod")

    refused = page(stranger, f"/incidents/{the_id()}", 404)

    assert "There is no incident" in refused
    assert "pay" not in refused
    assert stranger.post(f"/incidents/{the_id()}", {"action": "resolved"}).status_code == 404
    assert page(stranger, "/e/default/incidents", 404)


def test_incident__that_is_none__404(admin: Client) -> None:
    for public_id in ("x", "00000000-0000-0000-0000-000000000000", quote(HOSTILE)):
        assert_harmless(page(admin, f"/incidents/{public_id}", 404))


def test_incident__nobody_named__lists_the_suspects(admin: Client, fleet: Fleet) -> None:
    publish(cluster("a"), cluster("b"))
    fleet.accept(held("a", 1), held("b", 1))
    publish(cluster("a", connect_timeout="3s"), cluster("b", connect_timeout="3s"))
    fleet.refuse(fleet.send(held("a", 2), held("b", 2)), "something", suspects=(held("a", 2), held("b", 2)))
    digest()

    shown = page(admin, f"/incidents/{Incident.objects.get(name='').public_id}")

    assert "nobody knows which" in shown
    assert "One of these was new" in shown
    assert "Quarantine" not in shown


def test_incident__of_what_is_not_told_apart__names_the_resources(admin: Client, settings: Settings) -> None:
    limits = replace(settings.PARLEY.limits, incidents_per_identity=1)
    settings.PARLEY = replace(settings.PARLEY, limits=limits)
    fleet = Fleet(1)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    for said in ("alpha", "Error adding/updating cluster(s) edge: beta"):
        fleet.refuse(fleet.send(*both), said, suspects=both)
        digest()
    crowd = Incident.objects.get(normalised=CROWDED)

    shown = page(admin, f"/incidents/{crowd.public_id}")

    assert "More refusals of cluster resources than are told apart" in shown
    assert "edge" in shown
    assert "one identity, or one address" in shown
    assert_harmless(shown)


def test_pages_of_incidents__many_more_incidents__no_more_queries(admin: Client, fleet: Fleet) -> None:
    paths = ("/e/default/incidents", f"/incidents/{the_id()}")
    few = [queries(admin, path) for path in paths]
    row = Incident.objects.get()
    for number in range(60):
        row.pk, row.fingerprint, row.public_id = None, f"{number:032x}", f"00000000-0000-0000-0000-{number:012}"
        row.save(force_insert=True)

    assert [queries(admin, path) for path in paths] == few
    assert max(few) <= 21  # three of them are the picture's


def test_change__an_ads_process_refuses_its_snapshot__says_which_and_why_and_is_not_settled(
    admin: Client, fleet: Fleet
) -> None:
    lineage = str(Environment.objects.get(key="default").lineage)
    refused = "snapshot 2 of 'default' is refused (its <signature> does not hold)"
    fleet.serves = {"default": Serving(lineage, 1, refused)}
    change = publish(cluster("other"))
    fleet.write()

    shown = page(admin, f"/changes/{change}").partition('id="progress"')[2]
    told = admin.get(f"/api/v1/changes/{change}").json()

    assert "Published, and not served everywhere yet." in shown
    assert "refused (its &lt;signature&gt; does not hold)" in shown
    assert ">settled<" not in shown
    (unserved,) = told["unserved"]
    assert (told["state"], unserved["epoch"]) == ("published", 1)
    assert unserved["reason"] == refused
    assert f"<b>{unserved['replica']}</b>" in shown


def test_refused_change__lists_and_headers__show_it_red_and_no_green_word(admin: Client, fleet: Fleet) -> None:
    change = Incident.objects.get().change

    row = page(admin, "/e/default/changes").partition(f'href="/changes/{change}"')[2].partition("</tr>")[0]
    head = page(admin, f"/changes/{change}").partition('id="progress"')[2].partition("<dl")[0]
    resource = page(admin, "/e/default/resource?type=cluster&name=pay").partition("<h1>pay</h1>")[2]
    snapshot = page(admin, "/e/default/snapshots").partition("<tbody>")[2].partition("</tr>")[0]

    assert ">refused<" in row
    assert "by 1 client<" in row
    assert ">refused<" in head
    assert "1 of 3 clients refused it." in head
    assert ">refused<" in resource.partition("</div>")[0]
    assert "by 1 of 3" in resource.partition("</div>")[0]
    assert '<a href="/e/default/clients?state=refusing">1 refuses</a>' in snapshot
    for shown in (row, head, resource.partition("</div>")[0], snapshot.partition("</th>")[0]):
        assert "state-good" not in shown


def test_rollback__of_a_change_whose_snapshot_before_is_forgotten__goes_to_the_newest_that_is_kept(
    admin: Client, fleet: Fleet
) -> None:
    for number in (3, 4, 5):
        publish(cluster("pay", connect_timeout=f"{number}s"))
    change, epoch = str(Change.objects.latest("generation").public_id), Environment.objects.get(key="default").epoch
    SnapshotRow.objects.filter(epoch=epoch - 1).delete()

    shown, snapshot = page(admin, f"/changes/{change}"), page(admin, f"/e/default/snapshots/{epoch}")

    assert f"/rollback?to={epoch - 2}" in shown
    assert f"Snapshot {epoch - 2} is the newest that is kept from before it." in " ".join(shown.split())
    assert f"/compare?from={epoch - 2}&amp;to={epoch}" in snapshot
    page(admin, f"/e/default/rollback?to={epoch - 2}")


def test_change__rolled_back__says_by_what_in_the_list_too_and_the_rollback_leads_to_it(
    admin: Client, fleet: Fleet
) -> None:
    change = Incident.objects.get().change
    admin.post("/e/default/rollback?to=1", {"reason": HOSTILE})
    rebuild()
    Incident.objects.update(state=IncidentState.RESOLVED.value)
    way_back = str(Change.objects.get(back_to__isnull=False).public_id)

    old, new = (" ".join(page(admin, f"/changes/{each}").split()) for each in (change, way_back))
    rows = page(admin, "/e/default/changes").partition("<tbody>")[2].split("</tr>")

    assert f'Rolled back by <a href="/changes/{way_back}">' in old
    assert "What it took back" not in old
    assert "/rollback?to=" not in old  # there is nothing to go back to any more
    assert "/rollback?to=" in new
    assert f'<a href="/changes/{change}">' in new.partition("What it took back")[2]
    assert "Rolled back by" not in new
    assert ["taken back<" in row for row in rows[:3]] == [False, True, False]
    for shown in (old, new, *rows):
        assert_harmless(shown)


def test_change__its_counts__lead_to_exactly_these_clients(admin: Client, fleet: Fleet) -> None:
    change = Incident.objects.get().change
    fleet.accept(held("pay", 2), who=slice(1, 2))
    shown = page(admin, f"/changes/{change}")
    links = re.findall(r'<a href="(/e/default/clients\?change=[^"]+)">(\d+)</a>', shown)

    found = {}
    for link, count in links:
        rows = page(admin, link.replace("&amp;", "&")).partition("<tbody>")[2]
        names = re.findall(r'href="/clients/[^"]+">(node-\d)<', rows)
        assert len(names) == int(count)
        found[link.rpartition("=")[2]] = names

    assert found == {"sent": ["node-1", "node-2", "node-3"], "acked": ["node-2"], "nacked": ["node-1"]}


def test_clients__of_a_change__keep_the_filter_and_are_of_this_environment(admin: Client, fleet: Fleet) -> None:
    change = Incident.objects.get().change

    shown = " ".join(page(admin, f"/e/default/clients?change={change}&answer=nacked&q=node-1").split())
    nobody = page(admin, f"/e/default/clients?change={change}&answer=silent")

    assert f'Those that refused <a href="/changes/{change}">' in shown
    assert f'name="change" value="{change}"' in shown
    assert "0 of 3 clients fit" in nobody
    assert 'name="change"' in nobody
    page(admin, f"/e/prod/clients?change={change}", status=404)
    page(admin, "/e/default/clients?change=<b>", status=404)


def test_change_and_incident__written_with_a_token__lead_to_it_for_who_administers(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    Incident.objects.update(change=publish_as("token:ci 'n' more", cluster("other")))
    incident, change = the_id(), Incident.objects.get().change
    link = '<a href="/tokens?text=ci+%27n%27+more">'

    for path in (f"/incidents/{incident}", f"/changes/{change}"):
        assert link in page(admin, path)
        assert "/tokens?text" not in page(person(Role.OPERATOR), path)
        USERS.objects.filter(username="operator-default").delete()


def test_incident__resolved_by_an_ack__says_which_change_and_who(admin: Client, fleet: Fleet) -> None:
    change = publish(cluster("pay", connect_timeout="5s"))
    fleet.accept(held("pay", 3))
    digest()

    happened = page(admin, f"/incidents/{the_id()}").partition("What happened")[2]
    text = " ".join(re.sub(r"<[^>]+>", "", happened).split())

    assert f"parley resolved it: clients accept r3, by change {change[:8]} of dana" in text
    assert f'<a href="/changes/{change}">' in happened


def test_refused_change__taken_back__is_told_in_the_past_tense_and_offers_no_empty_rollback(
    admin: Client, fleet: Fleet
) -> None:
    change = Incident.objects.get().change
    admin.post("/e/default/rollback?to=1", {"reason": "checkout fails"})
    rebuild()
    digest()
    Incident.objects.update(state=IncidentState.RESOLVED.value, resolved_epoch=3)

    shown = page(admin, f"/changes/{change}")
    incident = page(admin, f"/incidents/{Incident.objects.get().public_id}")
    again = page(admin, "/e/default/rollback?to=1")

    assert "was refused by 1 of" in " ".join(re.sub(r"<[^>]+>", "", shown).split())
    assert "Since then: " not in incident
    assert '<a href="/e/default/snapshots/3">snapshot 3</a>' in incident
    assert "Nothing to go back" in again
    assert 'name="reason"' not in again
