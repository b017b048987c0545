"""Change sets in the console: two people propose, review, approve, schedule and publish with nothing else."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from controlplane.accounts.principal import SYSTEM, Role
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.review import ReviewSettings
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Delete, Put
from controlplane.changesets.models import ChangeSet
from controlplane.changesets.selectors import change_set_get
from controlplane.changesets.services import (
    Times,
    change_set_approve,
    change_set_comment,
    change_set_create,
    change_set_submit,
    change_sets_tick,
)
from controlplane.changesets.values import SetState
from controlplane.database.aliases import READER
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA, HOSTILE, SignIn, assert_harmless, page, queries
from tests.web.proposals import (
    EDIT,
    HERE,
    NEW,
    PAY,
    SETS,
    buttons,
    forms,
    newest,
    proposed,
    review,
    send,
    state,
    submitted,
    text,
    version,
)
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def test_two_people__go_the_whole_way_by_the_console_alone(two_editors: tuple[Client, Client], written: str) -> None:
    author, other = two_editors
    review()

    # Saving leads to the question, which keeps what was typed and makes a change set of it.
    refused = author.post(EDIT, {"text": text(), "revision": "2", "message": "for the sale", "action": "save"})
    assert refused.status_code == 409
    [asked] = [form for form in forms(refused.content.decode()) if "set_title" in form]
    assert asked["text"] == [text()]
    answer = author.post(EDIT, {**asked, "action": "propose", "set_title": "more patience"})
    made = str(newest().public_id)
    assert (answer.status_code, answer["Location"]) == (302, f"/change-sets/{made}")
    assert Resource.objects.get(name="pay").counter == 2

    # Its page shows what it does; the author submits it, and cannot approve it.
    shown = page(author, f"/change-sets/{made}")
    assert "more patience" in shown
    assert "connect_timeout: 7s" in shown
    assert send(author, made, "submit", reason="please").status_code == 302
    assert "approve" not in buttons(page(author, f"/change-sets/{made}"))
    assert send(author, made, "approve").status_code == 403
    assert "1 waits for review" in page(other, SETS)

    # The other comments a line, rejects it, and approves it once it is mended.
    assert send(other, made, "comment", type="cluster", name="pay", line="3", text="why 7?").status_code == 302
    shown = html.unescape(page(author, f"/change-sets/{made}"))
    assert "why 7?" in shown
    assert 'line 3: <code class="foreign">connect_timeout: 7s</code>' in shown
    assert send(other, made, "reject").status_code == 422
    assert send(other, made, "reject", reason="too long").status_code == 302
    assert state(made) is SetState.REJECTED
    entry = f"/change-sets/{made}/resource?type=cluster&name=pay"
    assert "connect_timeout: &#x27;7s&#x27;" in page(author, entry)
    saved = author.post(
        entry, {"text": text(timeout="6s"), "revision": "2", "version": version(made), "action": "save"}
    )
    assert (saved.status_code, saved["Location"]) == (302, f"/change-sets/{made}")
    assert send(author, made, "submit").status_code == 302
    assert send(other, made, "approve", reason="fine").status_code == 302
    assert state(made) is SetState.APPROVED

    # The author schedules it, cancels that, and publishes it now.
    later = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M}"
    assert send(author, made, "schedule", not_before=later).status_code == 302
    assert "It is published by itself from" in page(other, f"/change-sets/{made}")
    assert send(author, made, "cancel").status_code == 302
    assert state(made) is SetState.APPROVED
    done = send(author, made, "publish")
    change = Change.objects.latest("pk")
    assert done["Location"] == f"/changes/{change.public_id}"
    assert change.message == "for the sale"
    assert Resource.objects.get(name="pay").counter == 3
    assert f'href="/change-sets/{made}"' in page(other, f"/changes/{change.public_id}")
    shown = page(other, f"/change-sets/{made}")
    assert f"/changes/{change.public_id}" in shown
    assert buttons(shown) == {"comment"}
    assert author.get(entry).status_code == 409


def test_schedule__its_time_comes__is_published_by_itself(two_editors: tuple[Client, Client], written: str) -> None:
    author, _ = two_editors
    made = proposed("pay")
    past = f"{datetime.now(UTC) - timedelta(minutes=5):%Y-%m-%dT%H:%M}"

    assert send(author, made, "schedule", not_before=past, reason="tonight").status_code == 302
    change_sets_tick()

    assert state(made) is SetState.PUBLISHED


@pytest.mark.parametrize(
    ("role", "sees"),
    [
        (Role.VIEWER, set()),
        (Role.OPERATOR, {"approve", "reject", "comment"}),
        (Role.EDITOR, {"approve", "reject", "comment", "cancel", "edit", "remove", "delete"}),
        (Role.ACCESS_EDITOR, {"comment"}),
    ],
)
def test_buttons__are_those_of_the_state_and_the_role_and_no_other_form_does_it(
    role: Role, sees: set[str], sign_in: SignIn, written: str
) -> None:
    who, made = sign_in(role, "default"), submitted("pay")

    assert buttons(page(who, f"/change-sets/{made}")) == sees
    for action in {"approve", "reject", "comment", "cancel", "edit", "remove", "delete", "publish", "merge"} - sees:
        answer = send(who, made, action, reason="because", text="words", title="other", type="cluster", name="pay")
        assert answer.status_code in (403, 409, 422), action
    assert state(made) is SetState.REVIEW
    assert change_set_get(public_id=made).view.title == "more time"


def test_page__of_another_environment__is_not_found_and_says_the_same_as_for_none(
    sign_in: SignIn, written: str
) -> None:
    made, foreigner = submitted("pay", title="twice the patience"), sign_in(Role.ADMIN, "prod")

    for path in (f"/change-sets/{made}", f"/change-sets/{made}/resource?type=cluster&name=pay"):
        found, absent = foreigner.get(path), foreigner.get(path.replace(made, "00000000-0000-4000-8000-000000000000"))
        assert (found.status_code, absent.status_code) == (404, 404)
        assert "There is no change set" in found.content.decode()
        assert "twice the patience" not in found.content.decode()
    assert foreigner.post(f"/change-sets/{made}", {"action": "comment", "version": "2", "text": "x"}).status_code == 404
    # Nor is anything put into it from another environment.
    asked = {"text": text("mine"), "action": "propose", "set_into": f"{made}:2"}
    refused = sign_in(Role.EDITOR, "prod").post("/e/prod/resources/new", asked)
    assert refused.status_code == 404
    assert "twice the patience" not in refused.content.decode()
    assert [each.name for each in change_set_get(public_id=made).entries] == ["pay"]


def test_form__page_of_an_older_version__is_refused_and_keeps_the_reason(two_editors: tuple[Client, Client]) -> None:
    _, other = two_editors
    made = submitted("pay")
    old = version(made)
    change_set_comment(public_id=made, reason="wait", actor=DANA)
    assert send(two_editors[0], made, "edit", title="another").status_code == 302
    change_set_submit(public_id=made, actor=DANA)

    answer = other.post(f"/change-sets/{made}", {"action": "approve", "version": old, "reason": "read every line"})

    assert answer.status_code == 409
    assert "read every line" in answer.content.decode()
    assert change_set_get(public_id=made).view.approvals == 0
    assert other.post(f"/change-sets/{made}", {"action": "approve", "reason": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("action", "fields", "says"),
    [
        ("schedule", {"not_before": "soon", "reason": "kept words"}, "is no time"),
        ("schedule", {"not_before": "", "reason": "kept words"}, "Say from when on"),
        ("edit", {"title": " ", "message": "kept words"}, "The title of a change set"),
        (
            "edit",
            {"title": "kept words", "not_before": "2027-01-02T00:00", "expires": "2027-01-01T00:00"},
            "contradict",
        ),
        ("comment", {"text": "kept words", "type": "cluster", "name": "pay", "line": "none"}, "cannot be line"),
        ("comment", {"text": "kept words", "type": "cluster", "name": "gone"}, "has no cluster"),
        ("comment", {"text": "kept words", "type": "cluster", "name": "nu\x00ll"}, "names no resource"),
        ("reject", {"reason": ""}, "Say why"),
        ("melt", {}, "nothing called"),
        ("merge", {}, "Choose for at least one name"),
    ],
)
def test_form__mistake__says_what_and_keeps_what_was_typed(
    action: str, fields: dict[str, str], says: str, two_editors: tuple[Client, Client], written: str
) -> None:
    made = proposed("pay") if action == "schedule" else submitted("pay")
    before = version(made)

    answer = send(two_editors[1], made, action, **fields)

    shown = html.unescape(answer.content.decode())
    assert answer.status_code in (409, 422)
    assert says in shown
    assert (version(made), state(made)) == (before, SetState.DRAFT if action == "schedule" else SetState.REVIEW)
    if "kept words" in fields.values() and fields.get("name", "pay") == "pay":
        assert "kept words" in shown


def test_edit__title_and_times__makes_it_a_draft_and_the_page_says_so_before(
    two_editors: tuple[Client, Client],
) -> None:
    made = submitted("pay", times=Times(None, datetime(2030, 1, 2, 3, 4, 56, tzinfo=UTC)))
    change_set_approve(public_id=made, actor=SYSTEM)
    shown = page(two_editors[0], f"/change-sets/{made}")
    assert "It becomes a draft again: every approval is void." in shown

    [form] = [each for each in forms(shown) if "expires_was" in each]
    sent = {**form, "title": "other words", "not_before": "2029-01-01T00:00", "action": "edit"}
    assert two_editors[0].post(f"/change-sets/{made}", sent).status_code == 302

    view = change_set_get(public_id=made).view
    assert (view.state, view.title, view.approvals) == (SetState.DRAFT, "other words", 0)
    assert view.not_before == datetime(2029, 1, 1, tzinfo=UTC)
    assert view.expires == datetime(2030, 1, 2, 3, 4, 56, tzinfo=UTC)  # what is not touched stays to the second


def test_moved__is_shown_with_its_change_and_decided_name_by_name(
    two_editors: tuple[Client, Client], written: str
) -> None:
    author, _ = two_editors
    made = submitted("pay", "shop", "third")
    change = change_apply(
        environment_key="default",
        edits=[Put(parsed(cluster(name, connect_timeout="9s"))) for name in ("pay", "shop")],
        actor=DANA,
    ).change_id

    shown = page(author, f"/change-sets/{made}")
    assert state(made) is SetState.STALE
    assert f"/changes/{change}" in shown
    assert "2 of what it holds were written since" in shown
    [form] = [each for each in forms(shown) if "moved_name" in each]
    assert form["moved_name"] == ["pay", "shop"]
    sent = {**form, "take-0": "ours", "take-1": "theirs", "action": "merge"}
    assert author.post(f"/change-sets/{made}", sent).status_code == 302

    detail = change_set_get(public_id=made)
    assert [(each.name, each.base) for each in detail.entries] == [("pay", 3), ("third", 0)]
    assert detail.view.state is SetState.DRAFT


def test_remove__takes_a_resource_out_of_the_set(two_editors: tuple[Client, Client]) -> None:
    made = proposed("pay", "shop")

    assert send(two_editors[0], made, "remove", type="cluster", name="shop").status_code == 302

    assert [each.name for each in change_set_get(public_id=made).entries] == ["pay"]


def test_delete__leads_to_the_list(two_editors: tuple[Client, Client]) -> None:
    made = proposed("pay")

    answer = send(two_editors[0], made, "delete")

    assert answer["Location"] == SETS
    assert not ChangeSet.objects.exists()


def test_list__is_filtered_by_state_and_paged(two_editors: tuple[Client, Client]) -> None:
    for number in range(52):
        proposed(f"c{number}", title=f"set-{number:02}")
    submitted("pay", title="looked at")

    first, waiting = page(two_editors[0], SETS), page(two_editors[0], f"{SETS}?state=review")

    assert "looked at" in first
    assert "set-00" not in first
    assert "looked at" in waiting
    assert "set-51" not in waiting
    [after] = re.findall(r'href="(\?after=\d+)"', first)
    second = page(two_editors[0], f"{SETS}{after}")
    assert "set-00" in second
    assert "looked at" not in second
    drafts = page(two_editors[0], f"{SETS}?state=draft")
    assert "set-51" in drafts
    assert "set-01" not in drafts


def test_resource__says_which_open_change_sets_write_it(two_editors: tuple[Client, Client], written: str) -> None:
    made = proposed("pay", title="more time for pay")
    change_set_create(environment_key="default", title="away", edits=[Delete(CLUSTER, "pay")], actor=DANA)

    shown = page(two_editors[0], PAY)

    assert f'href="/change-sets/{made}"' in shown
    assert "more time for pay" in shown
    assert "deletes it, once it is published" in " ".join(shown.split())
    send(two_editors[0], made, "publish")
    assert "more time for pay" not in page(two_editors[0], f"{PAY}&tab=current")


def test_front_page_environment_and_list__say_what_waits_for_review(two_editors: tuple[Client, Client]) -> None:
    submitted("pay")
    submitted("stale")
    change_apply(environment_key="default", edits=[Put(parsed(cluster("stale")))], actor=DANA)

    assert "1 change set waits for review" in page(two_editors[0], "/")
    assert "1 waits for review." in page(two_editors[0], HERE)
    assert "1 waits for review" in page(two_editors[0], SETS)


def test_audit__leads_to_the_change_set(sign_in: SignIn) -> None:
    made = proposed("pay")

    assert f'href="/change-sets/{made}"' in page(sign_in(None, ""), "/audit")


def test_review_settings__are_the_administrators_and_say_what_is_not_under_review(sign_in: SignIn) -> None:
    admin, editor = sign_in(Role.ADMIN, "default"), sign_in(Role.EDITOR, "default")
    form = {"required": "on", "approvals": "2", "self_approval": "on", "role": "admin"}

    assert editor.post(f"{HERE}/review", form).status_code == 403
    assert admin.post(f"{HERE}/review", {**form, "approvals": "99"}).status_code == 422
    shown = admin.post(f"{HERE}/review", {**form, "role": "viewer"})
    assert shown.status_code == 422
    assert 'value="2"' in shown.content.decode()
    assert environment_get(key="default").policy.review == ReviewSettings()
    assert admin.post(f"{HERE}/review", form).status_code == 302

    assert environment_get(key="default").policy.review == ReviewSettings(
        required=True, approvals=2, self_approval=True, break_glass_role=Role.ADMIN
    )
    assert "are not under review yet" in page(editor, f"{HERE}/review")
    assert "needs the role admin" in page(editor, f"{HERE}/review")


def test_pages__full_of_hostile_words__show_them_harmlessly(sign_in: SignIn) -> None:
    admin = sign_in(None, "")
    name = "<img src=x onerror=alert(1)>\u202egnp.exe"
    edits = [Put(parsed(cluster(name)))]
    made = change_set_create(environment_key="default", title=HOSTILE, message=HOSTILE, edits=edits, actor=DANA)
    change_set_comment(public_id=made, reason=HOSTILE, actor=DANA)
    ChangeSet.objects.update(waits_for=HOSTILE, scheduled_by=HOSTILE)

    for path in (SETS, f"/change-sets/{made}", NEW, f"{HERE}/import"):
        assert_harmless(re.sub(r' value="[^"]*"', "", page(admin, path)))


def test_pages__of_500_sets_and_500_resources__ask_no_more_than_those_of_a_few(sign_in: SignIn, written: str) -> None:
    admin = sign_in(None, "")
    few = submitted("pay", "shop")
    paths = (SETS, f"{SETS}?state=draft", f"{SETS}?state=review", "/", HERE, PAY, NEW, f"{HERE}/import")
    before = [queries(admin, path) for path in (*paths, f"/change-sets/{few}")]

    names = [f"c{number:03}" for number in range(500)]
    many = submitted(*names)
    for name in names[:400]:
        proposed(name)
    for _ in range(60):
        change_set_comment(public_id=many, reason="hm", actor=DANA)
    after = [queries(admin, path) for path in (*paths, f"/change-sets/{many}")]
    judged = [queries(admin, f"/change-sets/{each}?part=prospect") for each in (few, many)]
    second = page(admin, f"/change-sets/{many}?page=20")

    assert max(after) <= 25, dict(zip(paths, after, strict=False))
    assert [count - less for count, less in zip(after, before, strict=True) if count > less + 6] == []
    assert max(judged) <= 25
    assert judged[1] <= judged[0] + 6
    assert "476 to 500 of 500 resources" in second
    assert "c499" in second
    assert "c000" not in second


def test_prospect__comes_after_the_page_and_without_scripts_with_it(sign_in: SignIn, written: str) -> None:
    viewer, made = sign_in(Role.VIEWER, "default"), submitted("pay")
    here = f"/change-sets/{made}"

    at_once, part, whole = page(viewer, here), page(viewer, f"{here}?part=prospect"), page(viewer, f"{here}?prospect=1")

    told = "connected clients ask for something of it"
    assert f'hx-get="{here}?part=prospect"' in at_once
    assert 'href="?prospect=1#prospect"' in at_once
    assert told not in at_once
    assert told in part
    assert "<html" not in part
    assert told in whole
    assert "part=prospect" not in whole
    assert "connect_timeout: 3s" in whole
    assert sign_in(Role.VIEWER, "prod").get(f"{here}?part=prospect").status_code == 404


def test_prospect__of_a_set_that_was_published_meanwhile__says_so(sign_in: SignIn, written: str) -> None:
    admin, made = sign_in(None, ""), proposed("pay")
    assert send(admin, made, "publish").status_code == 302

    shown = page(admin, f"/change-sets/{made}?part=prospect")

    assert "It was published meanwhile" in shown
    assert "could not be published" not in shown
