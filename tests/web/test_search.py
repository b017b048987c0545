"""The search page and what the box suggests: everything by its words, commands, and only what somebody may see and
do.
"""

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils.html import escape
from pytest_django.fixtures import Settings

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change, Quarantine
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.common.limits import Limit
from controlplane.console.commands import COMMANDS
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import incident_quarantine
from tests.api.conftest import limited
from tests.services.incidents.fleet import Fleet
from tests.support.manifests import cluster, parsed, tls_secret
from tests.web.conftest import DANA, HOSTILE, USERS, assert_harmless, page, queries
from xdscore.access import Effect

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def options(browser: Client, text: str) -> str:
    answer = browser.get("/search", {"q": text, "part": "options"})
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "private, no-store"
    return str(answer.content.decode())


def links(html: str) -> list[str]:
    return [each.replace("&amp;", "&") for each in re.findall(r'role="option"[^>]*? href="([^"]*)"', html)]


def commanded(browser: Client, text: str) -> list[str]:
    """Where a command leads without scripts: the links of the search page."""
    part = page(browser, f"/search?q={quote(text)}").partition('id="command"')[2].partition("</section>")[0]
    return [each.replace("&amp;", "&") for each in re.findall(r'<a href="([^"]*)"', part)]


def test_search__word_of_a_content__leads_to_it_and_says_where(admin: Client, fleet: Fleet) -> None:
    edits = [Put(parsed(cluster("cart", alt_stat_name="wording"))), Put(parsed(tls_secret("key", "x")))]
    change_apply(environment_key="default", edits=edits, actor=DANA)

    shown = page(admin, "/search?q=wording")

    assert "<code>/alt_stat_name</code> wording" in shown
    assert ">cart</a>" in shown
    assert "Nor were 1 contents that hold secrets." in shown


def test_search__more_than_ten__leads_to_all_of_the_kind(admin: Client) -> None:
    edits = [Put(parsed(cluster(f"shop-{number}"))) for number in range(12)]
    change_apply(environment_key="default", edits=edits, actor=DANA)

    some, every = page(admin, "/search?q=shop"), page(admin, "/search?q=shop&kind=resource")

    assert some.count(">shop-") == 10
    assert 'href="/search?q=shop&amp;kind=resource"' in some
    assert every.count(">shop-") == 12
    assert page(admin, "/search?q=shop&kind=nothing").count(">shop-") == 10


def test_search__number_of_the_only_change__leads_to_it(admin: Client) -> None:
    made = change_apply(environment_key="prod", edits=[Put(parsed(cluster("shop")))], actor=DANA)
    rule_create(environment_key="prod", draft=RuleDraft(Effect.ALLOW, "*"), actor=DANA)
    number = Change.objects.latest("pk").generation

    assert admin.get(f"/search?q={number}")["Location"] == f"/changes/{Change.objects.latest('pk').public_id}"
    assert made.change_id != str(Change.objects.latest("pk").public_id)


def test_search__line_of_an_access_log__is_offered_as_a_request_and_not_called_unknown(admin: Client) -> None:
    line = '[2026-01-31T02:10:00.310Z] "GET /pay HTTP/1.1" 404 NR 0 0 0 - "-" "curl/8" "1c" "shop.example" "-"'

    shown = page(admin, f"/search?q={quote(line)}")
    answer = admin.post("/e/default/request", {"line": line, "paste": "1"})

    assert '<form method="post" action="/e/default/request"' in shown
    assert f'name="line" value="{escape(line)}"' in shown
    assert "Nothing is called so" not in shown
    assert answer.status_code == 200
    assert escape(line) in answer.content.decode()
    assert "access log" not in page(admin, "/search?q=GET+/pay")


def epoch() -> int:
    return environment_get(key="default").epoch


COMMANDED = {
    "quarantine pay": ["/incidents/{incident}#reason-q"],
    "release pay": [],
    "explain pay for node-1": ["/x?e=default&t=cluster&n=pay&c=node-1"],
    "compare live {epoch}": ["/e/default/compare?from=live&to={epoch}"],
    "compare live in prod": ["/e/prod/compare?from=live&to=live"],
    "compare {epoch} in prod": [],
    "compare 999999 {epoch}": [],
    "roll back to {epoch}": ["/e/default/rollback?to={epoch}"],
    "roll back to 999999": [],
    "go to incidents": ["/e/default/incidents"],
    "go to change sets in prod": ["/e/prod/change-sets"],
    "new listener": ["/e/default/resources/new?type=listener"],
    "new rule": ["/e/default/access/rule"],
    "new channel": ["/channels/new"],
    "edit pay": ["/e/default/resource/edit?type=cluster&name=pay"],
    "deny cluster pay": ["/e/default/access/rule?effect=deny&pattern=pay&types=cluster"],
    "allow pay*": ["/e/default/access/rule?effect=allow&pattern=pay%2A"],
    "freeze": ["/e/default/freezes"],
    "freeze prod": ["/e/prod/freezes"],
    "freeze prod 2h deploy night": ["/e/prod/freezes?for=2h&reason=deploy+night"],
    "freeze nowhere": [],
    "go to nowhere": [],
}


def test_commands__without_scripts__lead_to_pages_and_forms_that_are_filled_in(admin: Client, fleet: Fleet) -> None:
    incident = str(Incident.objects.get().public_id)
    change = Change.objects.get(revisions__resource__name="pay", revisions__number=2)

    for command, expected in COMMANDED.items():
        text = command.format(epoch=epoch())
        assert commanded(admin, text) == [each.format(incident=incident, epoch=epoch()) for each in expected], text
        assert links(options(admin, text))[: len(expected)] == commanded(admin, text), text
    way = "/e/default/request?authority=https%3A%2F%2Fshop.example%2Fpay"
    assert commanded(admin, "where does https://shop.example/pay go") == [way]
    assert 'value="/pay"' in page(admin, way)
    assert commanded(admin, f"undo {change.generation}") == [f"/changes/{change.public_id}/undo"]
    assert commanded(admin, f"undo {str(change.public_id)[:8]}") == [f"/changes/{change.public_id}/undo"]


def test_commands__each_leads_to_a_page_that_is_there_and_changes_nothing(admin: Client, fleet: Fleet) -> None:
    before = Change.objects.count(), Quarantine.objects.count()

    for command in {*COMMANDED} | {f"undo {Change.objects.latest('pk').generation}"}:
        text = command.format(epoch=epoch())
        statuses = [admin.get(url.partition("#")[0]).status_code for url in commanded(admin, text)]
        assert set(statuses) <= {200}, text

    assert (Change.objects.count(), Quarantine.objects.count()) == before
    deny = page(admin, commanded(admin, "deny cluster pay")[0])
    assert 'value="pay"' in deny
    incident, _, field = commanded(admin, "quarantine pay")[0].partition("#")
    assert f'id="{field}"' in page(admin, incident)


def test_commands__once_quarantined__the_release_is_offered_and_no_second_quarantine(
    admin: Client, fleet: Fleet
) -> None:
    incident = str(Incident.objects.get().public_id)
    incident_quarantine(public_id=incident, reason="r", actor=DANA, request_id="")

    assert commanded(admin, "quarantine pay") == []
    assert commanded(admin, "release cluster pay") == [f"/incidents/{incident}#reason-r"]
    assert commanded(admin, "release route pay") == []
    assert 'id="reason-r"' in page(admin, f"/incidents/{incident}")


MAY = {
    Role.VIEWER: {"explain pay", "compare live {epoch}", "go to incidents"},
    Role.EDITOR: {"explain pay", "compare live {epoch}", "go to incidents", "edit pay", "new listener", "undo"},
    Role.ACCESS_EDITOR: {"explain pay", "compare live {epoch}", "go to incidents", "new rule", "deny pay"},
    Role.OPERATOR: {
        "explain pay",
        "compare live {epoch}",
        "go to incidents",
        "quarantine pay",
        "roll back to {epoch}",
        "undo",
    },
}


@pytest.mark.parametrize("role", MAY)
def test_commands__that_somebody_may_not_do__are_not_offered(
    person: Callable[..., Client], fleet: Fleet, role: Role
) -> None:
    browser = person(role)
    undo = f"undo {Change.objects.latest('pk').generation}"
    every = {*set().union(*MAY.values()), "freeze", "new channel"}

    offered = {text for text in every if commanded(browser, undo if text == "undo" else text.format(epoch=epoch()))}

    assert offered == MAY[role]


def test_commands__about_an_environment_of_others__find_and_say_nothing_of_it(
    person: Callable[..., Client], fleet: Fleet
) -> None:
    stranger = person(Role.ADMIN, "prod")

    undo = f"undo {str(Change.objects.latest('pk').public_id)[:8]}"
    for text in ("quarantine pay", "edit pay", f"compare {epoch()} in default", "freeze default", undo):
        assert commanded(stranger, text) == [], text
    assert commanded(stranger, "explain pay") == ["/x?e=prod&t=listener&n=pay"]
    for text in ("pay", "node-1", "dana", str(Incident.objects.get().public_id)):
        assert [each for each in links(options(stranger, text)) if not each.startswith("/search?")] == [], text


def test_options__of_a_text__are_links_to_what_it_finds_and_ways_to_go_on(admin: Client, fleet: Fleet) -> None:
    shown = options(admin, "pay")

    assert links(shown)[0] == "/e/default/resource?type=cluster&name=pay"
    assert f"/incidents/{Incident.objects.get().public_id}" in links(shown)
    assert links(shown)[-1] == "/search?q=pay"
    assert 'data-for="pay"' in shown
    assert links(options(admin, "incid"))[0] == "/e/default/incidents"
    assert 'data-fill="quarantine "' in options(admin, "quar")
    assert len(links(options(admin, ""))) == len(COMMANDS)


def test_options__hostile_texts__do_no_harm(admin: Client, fleet: Fleet) -> None:
    for text in (HOSTILE, f"quarantine {HOSTILE}", f"explain {HOSTILE} for {HOSTILE}", '"><script>', "\x00"):
        assert_harmless(options(admin, text))
        assert "<img src=x" not in page(admin, f"/search?q={quote(text)}")
    assert_harmless(options(admin, "pay"))


def test_search_and_options__ask_few_questions(admin: Client, fleet: Fleet) -> None:
    paths = ("/search?q=pay+nothing", "/search?q=pa", "/search?part=options&q=pa", "/search?part=options&q=undo+1")

    assert {path: count for path in paths if (count := queries(admin, path)) > 25} == {}


def test_options__asked_for_too_often__are_refused_as_pages_are(settings: Settings, admin: Client) -> None:
    limited(settings, page_requests_per_s=1, page_burst=3)

    answers = [admin.get("/search", {"q": "pay", "part": "options"}).status_code for _ in range(8)]

    assert (answers[0], answers[-1]) == (200, 429)


def test_search__with_limits_only__finds_nothing_as_the_other_pages(admin: Client, fleet: Fleet) -> None:
    user = USERS.objects.create_user("pia")
    within = Limit(types=("cluster",), names=("pay*",)).text
    RoleGrant.objects.create(user=user, environment="default", role="editor", within=within)
    browser = Client()
    browser.force_login(user)

    assert "Nothing is called so" in page(browser, "/search?q=pay")
    assert commanded(browser, "edit pay") == []


def test_search_page__empty_or_a_question_mark__lists_the_commands(admin: Client) -> None:
    for text in ("", "?"):
        shown = page(admin, f"/search?q={quote(text)}")
        assert [each.usage for each in COMMANDS if f"<code>{each.usage}</code>" not in shown] == []
