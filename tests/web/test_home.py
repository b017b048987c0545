"""The front page and the search box: from whatever somebody has in their hand to the page that says why."""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import Role
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Change
from controlplane.clients.models import Client as Row
from controlplane.common.errors import Conflict
from controlplane.database.aliases import READER
from controlplane.fitness.models import ProcessState
from controlplane.incidents.models import Incident
from tests.services.incidents.fleet import DANA, Fleet, publish, rebuild
from tests.support.facts import stream, subscribed
from tests.support.manifests import cluster
from tests.web.conftest import HOSTILE, assert_harmless, page, queries
from xdscore.access import Effect

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def leads(client: Client, typed: str) -> str:
    answer = client.get("/search", {"q": typed})
    assert answer.status_code == 302, answer.content.decode()[:500]
    return str(answer["Location"])


def test_home__something_is_refused__says_so_first_and_each_number_leads_to_what_it_counts(
    admin: Client, fleet: Fleet
) -> None:
    shown = page(admin, "/")

    assert "1 incident is unresolved" in shown
    assert f'href="/incidents/{Incident.objects.get().public_id}"' in shown
    assert '<a href="/e/default/clients?state=refusing">1</a>' in shown
    assert '<a href="/e/default/clients">3</a>' in shown
    assert '<a href="/e/default/incidents?state=open">1</a>' in shown
    assert "1 process, 3 streams" in shown
    assert_harmless(shown)


def test_home__a_worker_with_foreign_keys_and_one_that_ended__names_the_one_that_runs(admin: Client) -> None:
    wrong = [["keys", "open <i>nothing</i>", True]]
    now = timezone.now()
    for number, seen_at in enumerate((now, now - timedelta(minutes=2))):
        ProcessState.objects.create(
            id=str(number), role="worker", host=f"w{number}", pid=7, seen_at=seen_at, wrong=wrong
        )

    shown = page(admin, "/")

    assert "<dt>worker w0/7</dt>" in shown
    assert "keys: open &lt;i&gt;nothing" in shown
    assert "w1/7" not in shown


def test_home__one_is_denied_and_nothing_is_refused__does_not_headline_that_all_is_well(admin: Client) -> None:
    one = Fleet(1)
    publish(cluster("pay"))
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "pay"), actor=DANA, consent=Consent(1))
    rebuild()
    one.buffer.learnt(one.streams[0], subscribed("pay"))
    one.accept()

    assert "No incident; 0 refusing, 1 denied, 0 silent" in page(admin, "/")


def test_hold__stands_on_the_front_page_too_and_says_what_it_refuses__an_access_rule_goes_through(
    admin: Client, fleet: Fleet
) -> None:
    admin.post("/e/default", {"field": "hold", "reason": "freeze"})
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "pay"), actor=DANA, consent=Consent(3))
    with pytest.raises(Conflict):
        publish(cluster("pay", connect_timeout="9s"))

    for path in ("/", "/e/default/resources"):
        banner = page(admin, path).partition("default is on hold:")[2].partition("</div>")[0]
        assert "freeze" in banner
        assert "Changes of resources are refused until the hold is released; access rules and policies can" in banner
        assert '<a href="/e/default">Release it</a>' in banner
    form = page(admin, "/e/default/rollback?to=1")
    assert "Hold: refuse later changes of resources" in form
    assert 'for="reason">Reason <span class="quiet">(required)</span>' in form


def test_home__nobody_connected__leads_to_the_first_client(admin: Client) -> None:
    shown = page(admin, "/")

    assert "Nothing is refused, and nobody is connected" in shown
    assert "Connect the first client" in shown
    assert "no process has reported within a day" in shown


def test_home__rights_in_one_environment__shows_no_other(person: Callable[..., Client], fleet: Fleet) -> None:
    shown = page(person(Role.VIEWER, "prod"), "/")

    assert "/e/prod/clients" in shown
    assert "/e/default" not in shown
    assert "pay" not in shown.replace("pay.internal", "")


def test_search__what_people_have_in_their_hands__leads_straight_to_the_answer(admin: Client, fleet: Fleet) -> None:
    node = Row.objects.get(node_id="node-2").pk
    text = (
        "empty address list (LDS resource pay: NOT_FOUND [XDS2101] Cluster 'pay' is not published in 'prod'. "
        "Explain: http://127.0.0.1:8000/x?e=prod&t=cluster&n=pay (node ID:node-2))"
    )

    assert leads(admin, "xds2101") == "/codes/XDS2101"
    assert leads(admin, "node-2") == f"/clients/{node}"
    assert leads(admin, node) == f"/clients/{node}"
    assert leads(admin, text) == "/x?e=prod&t=cluster&n=pay&c=node-2"
    assert leads(admin, "NOT_FOUND [XDS2101] Cluster 'pay' is not pub") == "/x?e=default&t=cluster&n=pay&code=XDS2101"
    incident, change = Incident.objects.get().public_id, Change.objects.latest("pk").public_id
    assert leads(admin, str(incident)) == f"/incidents/{incident}"
    assert leads(admin, str(change)) == f"/changes/{change}"


def test_search__a_word__lists_clients_resources_and_incidents(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, "/search?q=PA")

    assert 'aria-labelledby="resources"' in shown
    assert 'aria-labelledby="incidents"' in shown
    assert_harmless(shown)
    assert "node-3" in page(admin, "/search?q=ode-")


def test_search__nothing_found__says_where_to_ask(admin: Client) -> None:
    shown = page(admin, f"/search?q={quote('zzz' + HOSTILE)}")

    assert "Nothing is called so" in shown
    assert "<img src=x" not in shown
    assert page(admin, "/search?q=")


def test_search__of_an_environment_one_may_not_see__finds_nothing(person: Callable[..., Client], fleet: Fleet) -> None:
    stranger = person(Role.VIEWER, "prod")

    assert "Nothing is called so" in page(stranger, "/search?q=node-1")
    assert "Nothing is called so" in page(stranger, "/search?q=pay")
    assert "Nothing is called so" in page(stranger, f"/search?q={Incident.objects.get().public_id}")


def test_home_and_search__more_of_everything__no_more_queries(admin: Client, fleet: Fleet) -> None:
    paths = ("/", "/search?q=ode-")
    few = [queries(admin, path) for path in paths]
    for number in range(100, 130):
        fleet.buffer.opened(stream(number))
        fleet.buffer.learnt(stream(number), subscribed(wildcard=True))
    fleet.write()

    assert [queries(admin, path) for path in paths] == few
    assert few[0] <= 23
    assert few[1] <= 26, few  # what the clients it found are told is looked up, too


def test_search__first_characters_of_a_change_or_its_author__lead_to_it(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    stranger = person(Role.VIEWER, "prod")
    newest = Change.objects.get(revisions__resource__name="pay", revisions__number=2).public_id
    begins = str(newest)[:8]

    shown = page(admin, "/search?q=dana")

    assert admin.get("/search", {"q": begins})["Location"] == f"/changes/{newest}"
    assert admin.get("/search", {"q": str(newest)[:11].upper()})["Location"] == f"/changes/{newest}"
    assert shown.count('href="/changes/') == 2
    assert "Nothing is called so" in page(stranger, f"/search?q={begins}")
    assert "Nothing is called so" in page(stranger, "/search?q=dana")
