"""Nobody takes anything from connected clients by one click: each form of the console that can asks before it does."""

import ast
import html
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from adsserver.store.facts import FactBuffer
from controlplane import console
from controlplane.access.models import AccessRule, ClientGroup
from controlplane.access.selectors import rule_list
from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import Role
from controlplane.catalog.guarding import LossThreshold
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Delete, Put
from controlplane.changesets.services import change_set_create
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from controlplane.journal.models import AuditEvent
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.facts import stream, subscribed
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA, assert_harmless, page
from tests.web.test_hostile import EVERYTHING, NAME
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import by_word

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "/e/default"
PART = {"X-Parley-Part": "1"}
OTHER = '{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "other", "connect_timeout": "1s"}'
SECRET = """"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: key
generic_secret: {secret: {inline_string: hunter2}}
"""


class Fields(HTMLParser):
    """What the forms of a page would send, form by form."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag == "form":
            self.forms.append({})
        elif tag == "input" and self.forms and given.get("name"):
            self.forms[-1].setdefault(given["name"], []).append(given.get("value", ""))


def question(shown: str) -> dict[str, Any]:
    """What the question about a loss sends, as a browser would."""
    parser = Fields()
    parser.feed(shown)
    [asked] = [form for form in parser.forms if "asked_loss" in form]
    del asked["csrfmiddlewaretoken"]
    return asked


def change_count() -> tuple[int, int]:
    return Change.objects.count(), AuditEvent.objects.count()


def deny(pattern: str, effect: Effect = Effect.DENY, *, enabled: bool = True, group: str = "") -> int:
    draft = RuleDraft(effect, pattern, client_groups=(group,) if group else (), enabled=enabled)
    return rule_create(environment_key="default", draft=draft, actor=DANA).id


@dataclass(frozen=True, slots=True)
class Write:
    """A form that is sent: where, what, and what its page has to say why by."""

    path: str
    form: dict[str, Any]
    why: str = ""
    connected: int = 3


def rule_form(**more: object) -> dict[str, Any]:
    return {"effect": "deny", "pattern": "pay", "types": ["cluster", "listener"], "enabled": "on", **more}


def rule_new(fleet: Fleet) -> Write:
    return Write(f"{HERE}/access/rule", rule_form(place="first", message="ask payments"))


def rule_changed(fleet: Fleet) -> Write:
    return Write(f"{HERE}/access/rule", rule_form(id=deny("elsewhere")))


def rule_switched(fleet: Fleet) -> Write:
    return Write(f"{HERE}/access", {"action": "switch", "id": deny("pay", enabled=False)})


def rule_deleted(fleet: Fleet) -> Write:
    allows = deny("pay", Effect.ALLOW)
    deny("*")
    return Write(f"{HERE}/access", {"action": "delete", "id": allows})


def rule_moved(fleet: Fleet) -> Write:
    allows = deny("pay", Effect.ALLOW)
    deny("*")
    return Write(f"{HERE}/access", {"action": "down", "id": allows})


def group_changed(fleet: Fleet) -> Write:
    draft = GroupDraft("edge", (Selector(node_id="nobody"),), Trust.DECLARED)
    group_create(environment_key="default", draft=draft, actor=DANA)
    deny("pay", group="edge")
    form = {"action": "group", "before": "edge", "key": "edge", "trust": "declared"}
    return Write(f"{HERE}/access", {**form, "matchers": "node_id=nobody\r\nnode_id=node-*"})


def default_effect(fleet: Fleet) -> Write:
    return Write(HERE, {"field": "default_effect", "default_effect": "deny"})


def selectors(fleet: Fleet) -> Write:
    return Write("/e/prod", {"field": "selectors", "selectors": "node_id=node-*"})


def resource_deleted(fleet: Fleet) -> Write:
    return Write(f"{HERE}/resource?type=cluster&name=pay", {"delete": "1", "message": "unused"}, "message")


def many_deleted(fleet: Fleet) -> Write:
    form = {"act": "delete", "chosen": "cluster r2 pay", "sure": "1", "message": "unused"}
    return Write(f"{HERE}/resources/bulk", form, "message")


def many_quarantined(fleet: Fleet) -> Write:
    publish(cluster("solo"))
    fleet.accept(held("solo", 1))
    digest()
    form = {"act": "quarantine", "chosen": "cluster r1 solo", "sure": "1", "message": "it breaks"}
    return Write(f"{HERE}/resources/bulk", form, "message")


def pruned(fleet: Fleet) -> Write:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=DANA, terms=Terms("team"))
    form = {"action": "save", "text": OTHER, "owner": "team", "prune": "1", "message": "all of it"}
    return Write(f"{HERE}/import", form, "message")


def set_published(fleet: Fleet) -> Write:
    made = change_set_create(
        environment_key="default", title="less", edits=[Delete(by_word["cluster"], "pay")], actor=DANA
    )
    return Write(f"/change-sets/{made}", {"action": "publish", "version": "1", "reason": "it is over"}, why="reason")


def rolled_back(fleet: Fleet) -> Write:
    publish(cluster("late"))
    fleet.accept(held("late", 1))
    digest()
    return Write(f"{HERE}/rollback?to=1", {"reason": "it was better", "hold": "1"}, "reason")


def quarantined(fleet: Fleet) -> Write:
    publish(cluster("solo"))
    fleet.accept(held("solo", 1))
    digest()
    other = Fleet(1, first=9)
    sent = other.send(held("solo", 1))
    other.refuse(sent, "Error adding/updating cluster(s) solo: no", suspects=(held("solo", 1),))
    digest()
    incident = Incident.objects.get(name="solo")
    return Write(
        f"/incidents/{incident.public_id}", {"action": "quarantine", "reason": "it breaks"}, "reason", connected=4
    )


WRITES = (
    rule_new,
    rule_changed,
    rule_switched,
    rule_deleted,
    rule_moved,
    group_changed,
    default_effect,
    selectors,
    resource_deleted,
    many_deleted,
    many_quarantined,
    pruned,
    rolled_back,
    quarantined,
    set_published,
)


@pytest.mark.parametrize("made", WRITES, ids=lambda each: each.__name__)
def test_write__clients_would_lose_something__is_done_only_after_their_number_was_typed(
    made: Callable[[Fleet], Write], admin: Client, fleet: Fleet
) -> None:
    write = made(fleet)
    before = change_count()

    asked = admin.post(write.path, write.form)
    sent = question(asked.content.decode())
    wrong = admin.post(write.path, {**sent, "accept_loss": "4"})
    again = question(wrong.content.decode())
    nothing = admin.post(write.path, {**again, "accept_loss": ""})

    assert [each.status_code for each in (asked, wrong, nothing)] == [409] * 3
    counted = f"<b>3 of {write.connected}</b> connected clients would lose something: 3 "
    assert counted in asked.content.decode()
    assert ">node-1</a>" in asked.content.decode()
    assert "'4' is not the number of clients" in html.unescape(wrong.content.decode())
    assert "Nothing was typed." in nothing.content.decode()
    # Nothing was stored, and nothing of what was typed is lost or made up.
    assert change_count() == before
    typed = {name: value if isinstance(value, list) else [str(value)] for name, value in write.form.items()}
    # Forms of the pages of access also say what they would propose, if asked to.
    pressed = {"act": typed["action"]} if "/access" in write.path and "action" in typed else {}
    assert sent == again == {**typed, **pressed, "asked_loss": ["3"], "accept_loss": [""]}
    if write.why:
        unsaid = admin.post(write.path, {**again, "accept_loss": "3", write.why: " "})
        assert unsaid.status_code in (409, 422)
        assert change_count() == before
    done = admin.post(write.path, {**again, "accept_loss": "3"})
    assert done.status_code == 302, done.content.decode()
    loss: Any = Change.objects.latest("pk").loss
    assert loss["clients"] == 3


@pytest.mark.parametrize("made", WRITES, ids=lambda each: each.__name__)
def test_write__nobody_is_connected__is_not_asked_about(
    made: Callable[[Fleet], Write], admin: Client, fleet: Fleet
) -> None:
    write = made(fleet)
    for each in fleet.streams:
        fleet.buffer.closed(each, "gone")
    fleet.write()

    assert admin.post(write.path, write.form).status_code == 302


def test_question__more_clients_connected_meanwhile__is_asked_again_with_their_number(
    admin: Client, fleet: Fleet
) -> None:
    write = rule_new(fleet)
    sent = question(admin.post(write.path, write.form).content.decode())
    Fleet(2, first=4)

    grown = admin.post(write.path, {**sent, "accept_loss": "3"})

    assert grown.status_code == 409
    assert "Meanwhile it is more clients: 5, where it was 3." in grown.content.decode()
    assert not AccessRule.objects.exists()
    done = admin.post(write.path, {**question(grown.content.decode()), "accept_loss": "5"})
    assert done.status_code == 302


def test_question__group_by_metadata__says_of_how_many_it_is_not_certain_and_why(admin: Client, fleet: Fleet) -> None:
    draft = GroupDraft("zone", (Selector(metadata={"zone": "eu-1"}),), Trust.DECLARED)
    group_create(environment_key="default", draft=draft, actor=DANA)

    asked = admin.post(f"{HERE}/access/rule", rule_form(groups=["zone"])).content.decode()
    certain = admin.post(f"{HERE}/access/rule", rule_form()).content.decode()

    assert "Of all of them it is not certain: they may belong to a group by metadata, which is not kept" in asked
    assert question(asked)["groups"] == ["zone"]
    assert "it is not certain" not in certain


def test_question__file_of_an_import__keeps_its_text(admin: Client, fleet: Fleet) -> None:
    write = pruned(fleet)
    text = f"# ünser <file>\n\n{OTHER}\n"
    file = SimpleUploadedFile("all.yaml", text.encode())

    asked = admin.post(write.path, {**write.form, "text": "", "file": file})

    sent = question(asked.content.decode())
    assert sent["text"] == [text]
    assert "Choose the file again" not in asked.content.decode()
    assert admin.post(write.path, {**sent, "accept_loss": "3"}).status_code == 302
    assert set(Resource.objects.filter(deleted=False).values_list("name", flat=True)) == {"other"}


def test_question__import_that_may_hold_secrets__asks_for_it_again_and_does_not_send_it_back(
    admin: Client, fleet: Fleet
) -> None:
    write = pruned(fleet)
    asked = admin.post(write.path, {**write.form, "text": SECRET})
    shown = asked.content.decode()

    assert asked.status_code == 409
    assert "hunter2" not in shown
    assert "Choose the file again" in shown
    sent = question(shown)
    assert (sent["owner"], sent["prune"], "text" in sent) == (["team"], ["1"], False)
    assert admin.post(write.path, {**sent, "text": SECRET, "accept_loss": "3"}).status_code == 302
    assert Resource.objects.get(name="pay").deleted


def test_question__hostile_names_and_clients__act_nowhere(admin: Client, two_environments: None) -> None:
    publish(cluster(NAME))
    hostile = stream(1, node_id=EVERYTHING, user_agent=EVERYTHING, user_agent_version=EVERYTHING)
    buffer = FactBuffer()
    buffer.opened(hostile)
    buffer.learnt(hostile, subscribed(NAME, wildcard=True))
    buffer._take(everything=True)
    buffer._flush()
    form = rule_form(pattern="*", types=[], message="words")

    asked = admin.post(f"{HERE}/access/rule", form)
    foreseen = admin.post(f"{HERE}/access/rule", form, headers=PART)

    assert asked.status_code == 409
    for answer in (asked, foreseen):
        shown = answer.content.decode()
        assert "&lt;img src=x onerror=alert(1)&gt;\\u202egnp.exe" in shown
        assert_harmless(shown)
        assert "<script>alert" not in shown


def test_question__clients_of_an_environment_that_one_may_not_see__are_counted_and_not_named(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    write = selectors(fleet)
    admin_of_prod = person(Role.ADMIN, "prod")

    asked = admin_of_prod.post(write.path, write.form).content.decode()
    foreseen = admin_of_prod.post(write.path, write.form, headers=PART).content.decode()

    for shown in (asked, foreseen):
        assert "<b>3 of 3</b> connected clients" in shown
        assert "3 clients of environments that you may not see" in shown
        assert "node-1" not in shown
        assert ">pay<" not in shown
    named = admin.post(write.path, write.form).content.decode()
    assert "node-1" in named
    assert ">pay<" in named


FORESEEN = (rule_new, rule_changed, group_changed, default_effect, selectors)


@pytest.mark.parametrize("made", FORESEEN, ids=lambda each: each.__name__)
def test_preview__form_is_open__says_what_the_guard_says_and_leaves_nothing(
    made: Callable[[Fleet], Write], admin: Client, fleet: Fleet
) -> None:
    write = made(fleet)
    before = change_count(), group_matchers(), patterns()

    foreseen = admin.post(write.path, write.form, headers=PART)
    asked = admin.post(write.path, write.form).content.decode()

    told = foreseen.content.decode()
    assert foreseen.status_code == 200
    lists = told[told.index('<p class="loss-sum">') : told.index("</div>\n</div>")]
    assert "<b>3 of 3</b>" in lists
    assert lists in asked
    assert "You are asked for this number" in told
    assert (change_count(), group_matchers(), patterns()) == before


def group_matchers() -> list[object]:
    return list(ClientGroup.objects.values_list("key", "matchers"))


def patterns() -> list[str]:
    return [row.pattern for row in rule_list(environment_key="default")]


def test_preview__nobody_loses_anything_or_the_form_is_wrong__is_said(admin: Client, fleet: Fleet) -> None:
    path = f"{HERE}/access/rule"

    nothing = admin.post(path, rule_form(pattern="nobody-has-it"), headers=PART).content.decode()
    wrong = admin.post(path, rule_form(pattern="a*b*c*"), headers=PART)
    group = admin.post(f"{HERE}/access", {"key": "g", "trust": "declared", "matchers": "what?"}, headers=PART)

    assert "No connected client loses anything." in nothing
    assert "foreseen-good" in nothing
    assert (wrong.status_code, group.status_code) == (200, 200)
    assert "It would be refused." in wrong.content.decode()
    assert "3 stars" in wrong.content.decode()
    assert "Line 1" in group.content.decode()


@pytest.mark.parametrize("made", FORESEEN, ids=lambda each: each.__name__)
def test_preview__without_the_role_of_the_write__is_refused(
    made: Callable[[Fleet], Write], person: Callable[..., Client], fleet: Fleet
) -> None:
    write = made(fleet)
    viewer = person(Role.VIEWER, "prod" if write.path == "/e/prod" else "default")

    foreseen = viewer.post(write.path, write.form, headers=PART)

    assert "node-1" not in foreseen.content.decode()
    assert "This needs the role" in foreseen.content.decode()


def test_deletion_rollback_and_import__planned__show_the_loss_beside_it(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    back = rolled_back(fleet)
    file = pruned(fleet)
    deletion = f"{HERE}/resource?type=cluster&name=pay&part=deletion"

    shown = [
        page(admin, deletion),
        page(admin, f"{back.path}&part=loss"),
        admin.post(file.path, {**file.form, "action": "check"}).content.decode(),
        page(admin, f"{HERE}/resource?type=cluster&name=other&part=deletion"),
    ]

    assert ["<b>3 of 3</b>" in each for each in shown] == [True, True, True, False]
    assert '<b class="foreign">late</b>' in shown[1]
    assert "It would be refused." in shown[3]  # there is no such resource
    assert deletion in html.unescape(page(admin, f"{HERE}/resource?type=cluster&name=pay"))
    assert "part=loss" in page(admin, back.path)
    assert person(Role.VIEWER).get(deletion).status_code == 403


def test_rollback__held_environment__its_loss_is_foreseen_all_the_same(admin: Client, fleet: Fleet) -> None:
    back = rolled_back(fleet)
    admin.post(HERE, {"field": "hold", "reason": "freeze"})

    assert "<b>3 of 3</b>" in page(admin, f"{back.path}&part=loss")


def test_thresholds__saved__decide_from_how_many_clients_on_it_is_asked(admin: Client, fleet: Fleet) -> None:
    form = {"field": "loss_threshold", "access_clients": "4", "other_percent": "100"}

    kept = admin.post(HERE, form)
    rule = rule_new(fleet)
    foreseen = admin.post(rule.path, rule.form, headers=PART).content.decode()

    assert kept.status_code == 302
    assert environment_get(key="default").policy.loss_threshold == LossThreshold(4, 100)
    assert "<b>3 of 3</b>" in foreseen
    assert "does not ask before a loss of so few" in foreseen
    assert admin.post(rule.path, rule.form).status_code == 302
    rebuild()
    shown = page(admin, HERE)
    assert 'name="access_clients" min="1"' in shown
    assert 'required value="4"' in shown
    assert 'required value="100"' in shown


@pytest.mark.parametrize(
    "wrong", [{"access_clients": "0"}, {"access_clients": "many"}, {"other_percent": "101"}, {"other_percent": ""}]
)
def test_thresholds__no_such_number__are_refused_and_what_was_typed_stays(wrong: dict[str, str], admin: Client) -> None:
    form = {"field": "loss_threshold", "access_clients": "7", "other_percent": "9", **wrong}

    answer = admin.post(HERE, form)

    assert answer.status_code == 422
    assert "Nothing was changed." in answer.content.decode()
    assert environment_get(key="default").policy.loss_threshold == LossThreshold()
    [kept] = form.items() - wrong.items() - {("field", "loss_threshold")}
    assert f'required value="{kept[1]}"' in answer.content.decode()


def test_services__called_by_pages__are_told_what_the_form_says_of_a_loss() -> None:
    """A page that writes and leaves the consent out could never be answered."""
    asked, silent = 0, []
    for found in iter_modules(console.__path__):
        module = import_module(f"{console.__name__}.{found.name}")
        for call in ast.walk(ast.parse(inspect.getsource(module))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            service = getattr(module, call.func.id, None)
            if not inspect.isfunction(service) or "consent" not in inspect.signature(service).parameters:
                continue
            asked += 1
            if "consent" not in {keyword.arg for keyword in call.keywords}:
                silent.append(f"{found.name}: {call.func.id}")

    assert silent == []
    assert asked >= len(WRITES)
