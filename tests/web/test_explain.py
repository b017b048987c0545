"""The page of Explain: the question, the answer first, the ladder, and ways to take it along."""

import html
import re
import urllib.parse
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import SYSTEM, Role
from controlplane.catalog.guarding import Consent
from controlplane.catalog.models import Change
from controlplane.clients.models import Client as Row
from controlplane.clients.models import HoldingMove, Nack, Stream, Subscription
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from tests.services.incidents.fleet import DANA, Fleet, publish, rebuild
from tests.support.facts import stream, subscribed
from tests.support.manifests import cluster
from tests.web.conftest import HOSTILE, assert_harmless, page, queries
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def test_explain__nothing_asked__is_a_form_with_the_environments_one_sees(person: Callable[..., Client]) -> None:
    shown = page(person(Role.VIEWER, "prod"), "/x")

    assert "Why does a client (not) have a resource?" in shown
    assert "<option>prod</option>" in shown
    assert "<option>default</option>" not in shown


def test_explain__client_that_refused__answers_first_and_climbs_all_eight_rungs(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, "/x?e=default&t=cluster&n=pay&c=node-1")

    assert "Does <span" in shown
    assert "node-1" in shown
    assert "<span>It refused r2 and goes on with r1</span>" in shown
    assert shown.index("It refused this content") < shown.index('class="ladder"')
    assert "It goes on with r1." in shown
    assert shown.count('class="rung rung-') == 8
    assert 'class="rung rung-fail"' in shown
    assert "Open the incident" in shown
    assert "permalink to this snapshot" in shown
    assert_harmless(shown)


def test_explain__client_that_accepted__says_yes(admin: Client, fleet: Fleet) -> None:
    publish(cluster("new"))
    for each in fleet.streams:
        fleet.buffer.learnt(each, subscribed(wildcard=True))
    fleet.write()

    shown = page(admin, "/x?e=default&t=cluster&n=absent&c=node-2")

    assert "Nobody has published Cluster &#x27;absent&#x27;" in shown
    assert "NOT_FOUND [XDS2101]" in shown
    assert 'href="/codes/XDS2101"' in shown


def test_explain__denied_by_a_rule__names_the_rule_and_offers_the_grant_to_whom_it_may_help(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    draft = RuleDraft(effect=Effect.DENY, pattern="pa*", message="ask the payments team")
    rule = rule_create(environment_key="default", draft=draft, actor=SYSTEM, consent=Consent(3))
    rebuild()

    shown = page(admin, "/x?e=default&t=cluster&n=pay&c=node-2")

    assert f"Rule {rule.id}</a> denies Cluster &#x27;pay&#x27;." in shown
    assert "PERMISSION_DENIED [XDS2103]" in shown
    assert f'<a href="/e/default/access#rule-{rule.id}">Rule {rule.id}</a> denies' in shown
    grant = "/e/default/access/rule?effect=allow&amp;types=cluster&amp;pattern=pay&amp;first="
    assert grant in shown
    assert f'href="/e/default/access/rule?id={rule.id}"' in shown
    assert f"propose a rule that allows it, or edit rule {rule.id}" in shown
    assert grant not in page(person(Role.VIEWER), "/x?e=default&t=cluster&n=pay&c=node-2")


def test_explain__denied_through_a_group__says_by_whom_why_and_who_may_change_it(
    admin: Client, person: Callable[..., Client], guests: int
) -> None:
    looks = person(Role.VIEWER)
    person(Role.ACCESS_EDITOR)
    person(Role.ACCESS_EDITOR, "prod")

    shown = page(admin, "/x?e=default&t=cluster&n=pay&c=guest-1")
    seen = page(looks, "/x?e=default&t=cluster&n=pay&c=guest-1")

    [change] = Change.objects.filter(message__contains="access rule")
    for each in (shown, seen):
        why = each.partition('id="why"')[2].partition("</p>")[0]
        assert "ask the payments team" in why
        assert '>guests</a> (<code class="foreign">cluster=guest</code>, declared)' in why
        assert '<b class="foreign">dana</b>' in why
        assert f'href="/changes/{change.public_id}"' in why
    assert "access-editor-default, admin may change it." in shown
    assert "An access editor of &#x27;default&#x27; may change it." in html.escape(html.unescape(seen))
    assert "access-editor-default" not in seen


def test_explain__denied_through_a_group__proposes_a_rule_for_that_group_alone(admin: Client, guests: int) -> None:
    shown = html.unescape(page(admin, "/x?e=default&t=cluster&n=pay&c=guest-1"))
    [grant] = re.findall(r'href="([^"]+effect=allow[^"]+)"', shown)

    form = html.unescape(page(admin, grant))

    assert 'name="groups" value="guests" checked' in form
    opens = "Opens Cluster 'pay' to clients in guests of 'default'."
    assert f"{opens} Rule {guests} then no longer decides for them." in form
    assert 'name="confirm"' not in form
    assert f'href="/e/default/access/rule?id={guests}"' in form


def test_explain__at_an_earlier_snapshot__answers_for_then_and_leads_to_now(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, "/x?e=default&t=cluster&n=pay&at=1")

    assert "at snapshot <b>1</b>" in shown
    assert "ask about now" in shown
    page(admin, "/x?e=default&t=cluster&n=pay&at=99", 404)
    page(admin, "/x?e=default&t=cluster&n=pay&at=-1", 404)


def test_explain__at_a_time__answers_for_then_in_words_and_keeps_the_time_in_its_links(
    admin: Client, fleet: Fleet
) -> None:
    hour = timedelta(hours=1)
    SnapshotRow.objects.update(at=F("at") - hour)
    Stream.objects.update(opened_at=F("opened_at") - hour)
    Subscription.objects.update(held_at=F("held_at") - hour)
    HoldingMove.objects.update(at=F("at") - hour)
    Nack.objects.update(at=F("at") - hour)
    then = timezone.now() - timedelta(minutes=30)
    question = "/x?e=default&t=cluster&n=pay&c=node-1"

    shown = html.unescape(page(admin, f"{question}&at=30m"))
    typed = page(admin, f"{question}&at={then:%Y-%m-%dT%H:%M}")
    text = admin.get(f"{question}&at=30m&format=text").content.decode()
    resources = page(admin, f"/clients/{Row.objects.get(node_id='node-1').pk}/resources?at=30m")

    assert "Did <span" in shown
    assert "It refused r2 and goes on with r1" in shown
    assert re.search(r"As of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, when snapshot 2 was served: It refused this", shown)
    assert re.search(r"at <b><time [^>]+>\S+ \S+ UTC</time></b>, when snapshot <b>2</b> was published", shown)
    assert "What had it answered?" in shown
    assert f"at={then:%Y-%m-%dT%H}" in urllib.parse.unquote(re.findall(r'href="([^"]*format=text)"', shown)[0])
    assert "It refused r2 and goes on with r1" in typed
    assert re.match(r"NO  client node-1 · cluster 'pay' in 'default' at \S+ \S+ UTC, at snapshot 2\n", text)
    [explained] = re.findall(r'href="(/x[^"]*n=pay[^"]*)"', html.unescape(resources))
    assert "It refused r2 and goes on with r1" in page(admin, explained)
    assert "&at=20" in explained
    for wrong in ("tomorrow", "2126-01-31T02:10", "500d"):
        page(admin, f"{question}&at={wrong}", 404)
    assert queries(admin, f"{question}&at=30m") <= 40


def test_explain__as_text__is_plain_and_ends_with_the_way_back(admin: Client, fleet: Fleet) -> None:
    answer = admin.get("/x?e=default&t=cluster&n=pay&c=node-1&format=text")

    text = answer.content.decode()
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert text.startswith("NO  client node-1 · cluster 'pay' in 'default'")
    assert "FAIL 7 answered" in text
    assert text.endswith("/x?e=default&t=cluster&n=pay&c=node-1\n")
    assert_harmless(text.replace("<img src=x", ""))


def test_explain__as_curl__quotes_what_a_shell_would_act_on(admin: Client) -> None:
    shown = page(admin, "/x?e=default&t=cluster&n=a'%3B%20rm%20-rf%20~")

    assert "&type=cluster&name=a%27%3B+rm+-rf+~" in html.unescape(shown)


def test_explain__hostile_question__is_shown_and_not_run(admin: Client, fleet: Fleet) -> None:
    answer = admin.get("/x", {"e": "default", "t": HOSTILE, "n": HOSTILE, "c": HOSTILE, "at": HOSTILE})
    other = admin.get("/x", {"e": "default", "t": "cluster", "n": "<img src=x onerror=alert(1)>", "c": HOSTILE})

    assert (answer.status_code, other.status_code) == (404, 404)
    assert "<img src=x" not in answer.content.decode() + other.content.decode()


@pytest.fixture
def guests(two_environments: None) -> int:
    """Of the connected clients that ask for `pay`, the three of group guests are denied it; the number of the rule."""
    group = GroupDraft("guests", (Selector(node_cluster="guest"),), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=DANA)
    draft = RuleDraft(Effect.DENY, "pay*", client_groups=("guests",), message="ask the payments team")
    number = rule_create(environment_key="default", draft=draft, actor=DANA).id
    few = Fleet(0)
    few_of = [
        *(
            stream(place, node_id=f"{who}-{place}", node_cluster=who)
            for place, who in enumerate(("guest", "guest", "guest", "demo"), 1)
        ),
        stream(5, node_id="wild", node_cluster="guest"),
    ]
    for opened in few_of:
        few.buffer.opened(opened)
    publish(cluster("pay"), cluster("free"))
    for opened in few_of[:-1]:
        few.buffer.learnt(opened, subscribed("pay"))
    few.buffer.learnt(few_of[-1], subscribed(wildcard=True))
    few.write()
    return number


def test_explain__no_client_and_a_rule_that_tells_clients_apart__depends_and_lists_who_is_told_so(
    admin: Client, guests: int
) -> None:
    shown = html.unescape(page(admin, "/x?e=default&t=cluster&n=pay"))
    answer = shown.partition('id="answer"')[2].partition("</section>")[0]

    assert "It depends on who asks" in answer
    assert "verdict-yes" not in shown
    assert ">Yes<" not in answer
    says = f"Rule {guests}</a> denies Cluster 'pay' to clients in guests; for everybody else 'default' allows it."
    assert says in answer
    assert "3 connected clients are told so:" in answer
    assert [name for name in ("guest-1", "guest-2", "guest-3", "demo-4", "wild") if f">{name}</a>" in answer] == [
        "guest-1",
        "guest-2",
        "guest-3",
    ]
    choices = shown.partition('id="askers"')[2].partition("</section>")[0]
    [of_the_fourth] = re.findall(r'href="([^"]*)">demo-4</a>', choices)
    assert "Does <span" in page(admin, of_the_fourth)
    assert '<option value="guest-1">' in shown
    text = admin.get("/x?e=default&t=cluster&n=pay&format=text").content.decode()
    assert text.startswith("IT DEPENDS ON WHO ASKS  any client · cluster 'pay' in 'default'\n")
    assert "3 connected clients are told so: guest-1, guest-2, guest-3\n" in text


def test_explain__no_client_and_a_rule_that_clients_were_not_told_of_yet__lists_nobody_as_told_so(
    admin: Client, guests: int
) -> None:
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "free"), actor=DANA, consent=Consent(9))
    late = stream(9, node_id="late", node_cluster="demo")
    few = Fleet(0)
    few.buffer.opened(late)
    few.buffer.learnt(late, subscribed("free"))
    few.write()
    rebuild()

    shown = html.unescape(page(admin, "/x?e=default&t=cluster&n=free"))

    assert "denies Cluster 'free'" in shown
    assert "No connected client is refused it now." not in shown.partition('id="answer"')[2].partition("</p>")[0]
    assert "connected client is told so" not in shown
    assert ">late</a>" in shown.partition('id="askers"')[2]


def test_explain__no_client_and_rules_that_say_one_thing__is_the_one_answer(admin: Client, guests: int) -> None:
    shown = page(admin, "/x?e=default&t=cluster&n=free")

    assert "verdict-yes" in shown
    assert "It depends on who asks" not in shown


def test_explain__error_text_without_a_client__looks_for_whom_it_was(admin: Client, guests: int) -> None:
    said = "PERMISSION_DENIED [XDS2103] This client may not read Cluster 'pay': no. Explain: https://cp"

    led = admin.get("/search", {"q": f"{said}/x?e=default&t=cluster&n=pay"})
    shown = html.unescape(page(admin, led["Location"]))
    gone = page(admin, "/x?e=default&t=cluster&n=free&code=XDS2103")

    assert "3 connected clients are told [XDS2103]:" in shown
    assert "The text says XDS2103. No connected client is told so of this name now." in gone


def test_explain__no_client_and_many_that_ask__costs_no_query_for_each_and_lists_some(
    admin: Client, guests: int
) -> None:
    few = queries(admin, "/x?e=default&t=cluster&n=pay")
    buffer = Fleet(0)
    for number in range(100, 180):
        opened = stream(number, node_id=f"guest-{number}", node_cluster="guest")
        buffer.buffer.opened(opened)
        buffer.buffer.learnt(opened, subscribed("pay"))
    buffer.write()

    shown = page(admin, "/x?e=default&t=cluster&n=pay")

    assert queries(admin, "/x?e=default&t=cluster&n=pay") == few <= 40
    assert "83 connected clients are told so:" in shown
    assert "and 73 more" in shown


def test_explain__any_question__costs_a_bounded_number_of_queries(admin: Client, fleet: Fleet) -> None:
    assert queries(admin, "/x?e=default&t=cluster&n=pay&c=node-1") <= 40
