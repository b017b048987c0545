"""The pages of access: rules in their order, groups, and cases that are tried."""

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client

from controlplane.access.selectors import case_list, group_get, rule_list, rule_state
from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import SYSTEM, Role
from controlplane.catalog.models import Change
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from tests.support.manifests import parsed, tls_secret
from tests.web.conftest import assert_harmless, page, queries
from xdscore.access import Effect

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

PATH = "/e/default/access"


def rule(pattern: str, effect: Effect = Effect.DENY, message: str = "") -> int:
    draft = RuleDraft(effect, pattern, message=message)
    return rule_create(environment_key="default", draft=draft, actor=SYSTEM).id


def patterns() -> list[str]:
    return [row.pattern for row in rule_list(environment_key="default")]


def test_access__rules__read_as_sentences_with_the_default_as_the_last(admin: Client) -> None:
    rule("pay*", message="ask <b>payments</b>")
    rule("payroll")
    rule("<img src=x onerror=alert(1)>", Effect.HIDE)

    shown = page(admin, PATH)

    assert "All clients may not read whatever is named pay*, and are told so." in shown
    assert "They read: “ask &lt;b&gt;payments&lt;/b&gt;”" in shown
    assert "never decides" in shown  # payroll stands behind pay*
    assert "All clients may read whatever no rule speaks of" in shown
    assert_harmless(shown)


def test_access__moved_switched_and_deleted__by_forms_alone(admin: Client) -> None:
    first, second = rule("a"), rule("b")

    answer = admin.post(PATH, {"action": "up", "id": second})
    assert (answer.status_code, answer["Location"]) == (302, f"{PATH}#rule-{second}")
    assert patterns() == ["b", "a"]
    admin.post(PATH, {"action": "down", "id": second})
    admin.post(PATH, {"action": "switch", "id": first})
    assert [(row.pattern, row.enabled) for row in rule_list(environment_key="default")] == [("a", False), ("b", True)]
    admin.post(PATH, {"action": "delete", "id": first})
    assert patterns() == ["b"]
    assert [admin.post(PATH, {"action": what, "id": "x"}).status_code for what in ("up", "nonsense")] == [404, 422]


def test_rule_form__filled_in__makes_and_changes_a_rule(admin: Client) -> None:
    rule("other")
    shown = page(admin, f"{PATH}/rule?effect=allow&types=cluster&pattern=pay&first=")
    given = {"effect": "allow", "pattern": "pay", "types": ["cluster"], "place": "first", "enabled": "on"}
    given |= {"confirm": "pay cluster"}

    admin.post(f"{PATH}/rule", given)

    assert 'value="pay"' in shown
    assert patterns() == ["pay", "other"]
    made = rule_state(rule_list(environment_key="default")[0])
    assert (made.draft.types, made.draft.effect) == (("cluster",), Effect.ALLOW)
    admin.post(f"{PATH}/rule", {**given, "id": made.id, "effect": "hide"})
    assert rule_state(rule_list(environment_key="default")[0]).draft.effect is Effect.HIDE
    refused = admin.post(f"{PATH}/rule", {**given, "pattern": "a*b*c*"})
    assert refused.status_code == 422
    assert "There is a problem" in refused.content.decode()


def test_rule_form__would_open_a_name_to_everybody__says_so_and_is_kept_only_when_that_is_confirmed(
    admin: Client,
) -> None:
    denies = rule("echo.demo")
    given = {"effect": "allow", "pattern": "echo.demo", "types": ["listener"], "place": "first", "enabled": "on"}
    shown = html.unescape(page(admin, f"{PATH}/rule?effect=allow&types=listener&pattern=echo.demo&first=&instead=1"))

    refused = admin.post(f"{PATH}/rule", given)
    other = admin.post(f"{PATH}/rule", {**given, "pattern": "*", "confirm": "echo.demo listener"})

    opens = "Opens Listener 'echo.demo' to every client of 'default'."
    assert f"{opens} Rule {denies} then no longer decides for this name." in shown
    assert f'href="{PATH}/rule?id=1"' in shown
    assert (refused.status_code, other.status_code) == (422, 422)
    assert "Every client is meant" in refused.content.decode()
    assert patterns() == ["echo.demo"]
    assert admin.post(f"{PATH}/rule", {**given, "confirm": "echo.demo listener"}).status_code == 302
    made = rule_state(rule_list(environment_key="default")[0])
    assert made.draft.effect is Effect.ALLOW
    # What it opens already needs no second word.
    assert admin.post(f"{PATH}/rule", {**given, "id": made.id, "message": "so"}).status_code == 302


def test_rule_form__takes_all_of_another_rule__says_that_it_never_decides_then(admin: Client) -> None:
    denies = rule("echo.demo")

    shown = html.unescape(page(admin, f"{PATH}/rule?effect=allow&pattern=echo.*&first="))

    assert "Opens everything named 'echo.*', secrets excepted, to every client of 'default'." in shown
    assert f"Rule {denies} then never decides." not in shown  # of secrets it still decides


def test_rule__changed__the_change_shows_what_it_was_and_is(admin: Client) -> None:
    made = rule("pay.*", Effect.ALLOW)
    admin.post(PATH, {"action": "switch", "id": made})
    [*_, change] = Change.objects.filter(kind="access").order_by("pk")

    shown = page(admin, f"/changes/{change.public_id}")

    assert change.message == f"access rule {made} updated: allow pay.*"
    assert f'<span class="quiet">rule</span> {made}' in shown
    assert "/rollback" not in shown  # it would leave the rule as it is
    assert f'href="/changes/{change.public_id}/undo"' in shown
    assert "enabled: true" in shown
    assert "enabled: false" in shown


def test_group_form__filled_in__makes_changes_and_deletes_a_group(admin: Client) -> None:
    given = {"action": "group", "key": "edge", "trust": "declared", "matchers": "cluster=edge\nnode_id=e-*"}

    admin.post(PATH, given)
    admin.post(PATH, {**given, "before": "edge", "matchers": "cluster=web"})

    assert [each.node_cluster for each in group_get(environment_key="default", key="edge").draft.matchers] == ["web"]
    assert "cluster=web" in page(admin, PATH)
    wrong = [{"key": "Not A Key"}, {"matchers": "nonsense"}, {"trust": "hope"}, {"matchers": ""}]
    assert [admin.post(PATH, {**given, **each}).status_code for each in wrong] == [422] * 4
    admin.post(PATH, {"action": "group-delete", "key": "edge"})
    assert "cluster=web" not in page(admin, PATH)


def test_case__tried_and_kept__says_which_rule_and_is_tried_again_later(admin: Client) -> None:
    number = rule("pay", message="ask payments")

    tried = page(admin, f"{PATH}?name=pay&type=cluster&node_id=n-1")
    admin.post(PATH, {"action": "case", "name": "pay", "type": "cluster", "node_id": "n-1", "expect": "allow"})

    assert f'by <a href="#rule-{number}">rule {number}</a>' in tried
    assert "ask payments" in tried
    shown = page(admin, PATH)
    assert "1 not kept" in shown
    assert "but the rules say <b>deny</b>" in shown
    assert "The name" in page(admin, f"{PATH}?name=*&type=cluster")
    admin.post(PATH, {"action": "case-delete", "id": case_list(environment_key="default").get().pk})
    assert "None yet" in page(admin, PATH)


def test_access__without_the_right__is_read_and_not_written(person: Callable[..., Client]) -> None:
    number = rule("pay")
    viewer, stranger = person(Role.VIEWER), person(Role.ADMIN, "prod")

    shown = page(viewer, PATH)

    assert "named pay" in shown
    assert 'value="up"' not in shown
    assert viewer.post(PATH, {"action": "delete", "id": number}).status_code == 403
    assert page(viewer, f"{PATH}/rule", 403)
    assert [stranger.get(PATH).status_code, stranger.post(PATH, {"action": "up", "id": number}).status_code] == [
        404
    ] * 2
    assert patterns() == ["pay"]


def test_access__many_more_rules_and_groups__no_more_queries(admin: Client) -> None:
    rule("first")
    few = queries(admin, PATH)
    for number in range(60):
        rule(f"r{number}")

    assert queries(admin, PATH) == few
    assert few <= 19
    assert 'rel="next"' in page(admin, PATH)


def test_secret__page_of_it_and_of_its_environment__say_who_may_read_it_and_lead_to_a_rule(admin: Client) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tls_secret("key", "hunter2")))], actor=SYSTEM)
    path = "/e/default/resource?type=secret&name=key"

    closed = html.unescape(page(admin, path))
    change = page(admin, f"/changes/{Change.objects.latest('pk').public_id}")
    draft = RuleDraft(Effect.ALLOW, "k*", types=("secret",))
    number = rule_create(environment_key="default", draft=draft, actor=SYSTEM).id
    opened = page(admin, path)

    assert "No rule that names the type secret lets any client read it." in closed
    [made] = re.findall(r'href="([^"]*)">Make a rule that allows it', closed)
    assert '<input class="form-check-input" type="checkbox" name="types" value="secret" checked>' in page(admin, made)
    assert "the environment's default never covers secrets" in closed
    assert "XDS3056" in change
    assert "lets any client read it" not in opened
    assert f'<a href="{PATH}#rule-{number}">rule {number}</a>: every client, names like <code>k*</code>' in opened
    assert "It does not cover secrets" in page(admin, "/e/default")
    assert "It does not cover secrets" in page(admin, PATH)
    tried = html.unescape(page(admin, f"{PATH}?type=secret&name=other"))
    assert "by the environment's default, which never covers secrets" in tried
