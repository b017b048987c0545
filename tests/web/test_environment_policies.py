"""Which clients an environment takes, said in lines; and the policies that only administrators change."""

import re

import pytest
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import environment_get
from controlplane.journal.selectors import audit_list
from tests.web.conftest import SignIn, page
from xdscore.environment_choice import Selector

pytestmark = pytest.mark.django_db
PATH = "/e/prod"


@pytest.fixture
def admin_of_prod(sign_in: SignIn) -> Client:
    return sign_in(Role.ADMIN, "prod")


def test_selectors__lines__are_kept_shown_and_taken_away_again(admin_of_prod: Client) -> None:
    lines = "cluster=edge metadata.zone=eu-*\nidentity=spiffe://corp/ns/pay/*"

    kept = admin_of_prod.post(PATH, {"field": "selectors", "selectors": lines})
    selectors = environment_get(key="prod").policy.selectors
    shown = page(admin_of_prod, PATH)
    admin_of_prod.post(PATH, {"field": "selectors", "selectors": " \n"})

    assert kept.status_code == 302
    assert selectors == (
        Selector(node_cluster="edge", metadata={"zone": "eu-*"}),
        Selector(identity="spiffe://corp/ns/pay/*"),
    )
    assert lines in shown
    assert environment_get(key="prod").policy.selectors == ()


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"field": "selectors", "selectors": "node_id=a\nnobody"}, "Line 2"),
        ({"field": "selectors", "selectors": "node_id=a*b*c*d"}, "3 stars"),
        ({"field": "node_ids", "node_ids": "a*b*c*d"}, "3 stars"),
        ({"field": "node_ids", "node_ids": "a\n" * 101}, "At most 100 lines"),
    ],
)
def test_policy__mistake__says_which_keeps_what_was_typed_and_changes_nothing(
    form: dict[str, str], says: str, admin_of_prod: Client
) -> None:
    before = environment_get(key="prod").policy

    answer = admin_of_prod.post(PATH, form)

    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert form[form["field"]].splitlines()[0] in answer.content.decode()
    assert environment_get(key="prod").policy == before


def test_node_ids_and_switches__saved__hold(admin_of_prod: Client) -> None:
    admin_of_prod.post(PATH, {"field": "node_ids", "node_ids": "{name}-*\nedge-1\n"})
    admin_of_prod.post(PATH, {"field": "deep_validation", "deep_validation": "on"})
    admin_of_prod.post(PATH, {"field": "require_if_match", "require_if_match": "on"})

    policy = environment_get(key="prod").policy
    assert policy.node_ids == ("{name}-*", "edge-1")
    assert policy.deep_validation
    assert policy.require_if_match
    assert "checked" in page(admin_of_prod, PATH)


@pytest.mark.parametrize("field", ["selectors", "node_ids", "deep_validation", "require_if_match"])
def test_policy__operator__is_refused(field: str, sign_in: SignIn) -> None:
    before = environment_get(key="prod").policy

    answer = sign_in(Role.OPERATOR, "prod").post(PATH, {"field": field, field: "on"})

    assert answer.status_code == 403
    assert environment_get(key="prod").policy == before


def test_policy__changed__the_change_and_the_audit_log_say_what_it_was_and_is(admin_of_prod: Client) -> None:
    admin_of_prod.post(PATH, {"field": "default_effect", "default_effect": "allow"})

    [change] = Change.objects.filter(environment__key="prod", message__contains="default effect")
    [event] = audit_list(environments=["prod"], verb="environment.updated", limit=5)

    assert change.message == "default effect: deny → allow"
    assert event.detail == {"before": {"default_effect": "deny"}, "after": {"default_effect": "allow"}}
    assert "default effect: deny → allow" in page(admin_of_prod, f"/changes/{change.public_id}")


def _form(browser: Client, **typed: str) -> dict[str, str | list[str]]:
    """The form as the page has it, with what somebody types."""
    shown = page(browser, PATH).partition('class="card settings"')[2].partition("</form>")[0]
    seen = dict(re.findall(r'name="(seen-[a-z_]+)" value="([^"]+)"', shown))
    selects = dict(re.findall(r'<select [^>]*name="([a-z_]+)".*?<option selected>([a-z]+)</option>', shown))
    fields = re.findall(r'name="field" value="([a-z_]+)"', shown)
    return {**seen, **selects, "field": fields, "access_clients": "1", "other_percent": "10", **typed}


def test_settings__one_save_of_several__is_one_change_of_what_was_touched(admin_of_prod: Client) -> None:
    changes = Change.objects.count()

    answer = admin_of_prod.post(PATH, _form(admin_of_prod, quarantine="off", other_percent="20", node_ids="edge-*"))
    policy = environment_get(key="prod").policy
    again = admin_of_prod.post(PATH, _form(admin_of_prod, quarantine="off", other_percent="20", node_ids="edge-*"))

    assert answer.status_code == again.status_code == 302
    assert (policy.quarantine.value, policy.loss_threshold.other_percent) == ("off", 20)
    assert policy.node_ids == ("edge-*",)
    assert Change.objects.count() == changes + 1


def test_settings__two_mistakes__are_said_at_once_at_their_fields_and_nothing_is_lost(admin_of_prod: Client) -> None:
    before = environment_get(key="prod").policy
    wrong = {"selectors": "node_id=a*b*c*d", "access_clients": "-3", "quarantine": "off"}

    answer = admin_of_prod.post(PATH, _form(admin_of_prod, **wrong))
    shown = answer.content.decode()

    assert answer.status_code == 422
    assert "2 settings cannot be stored as they are. Nothing was changed." in shown
    assert 'id="selectors-wrong"' in shown
    assert 'id="loss_threshold-wrong"' in shown
    assert 'value="-3"' in shown
    assert "node_id=a*b*c*d</textarea>" in shown
    assert "<option selected>off</option>" in shown
    assert environment_get(key="prod").policy == before


def test_settings__somebody_else_saved_meanwhile__keeps_theirs_and_says_so_where_both_touched(
    admin_of_prod: Client,
) -> None:
    old = _form(admin_of_prod)
    admin_of_prod.post(PATH, {"field": "quarantine", "quarantine": "off"})

    other = admin_of_prod.post(PATH, {**old, "other_percent": "30"})
    same = admin_of_prod.post(
        PATH, {**old, "quarantine": "automatic" if old["quarantine"] != "automatic" else "suggest"}
    )

    policy = environment_get(key="prod").policy
    assert other.status_code == 302
    assert (policy.quarantine.value, policy.loss_threshold.other_percent) == ("off", 30)
    assert same.status_code == 422
    assert "Somebody else changed this meanwhile" in same.content.decode()


def test_settings__operator__has_the_fields_that_they_may_change(sign_in: SignIn) -> None:
    operator = sign_in(Role.OPERATOR, "prod")

    form = _form(operator, quarantine="off")
    answer = operator.post(PATH, form)

    assert form["field"] == ["quarantine"]
    assert answer.status_code == 302
    assert environment_get(key="prod").policy.quarantine.value == "off"
