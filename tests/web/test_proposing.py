"""Proposing from every form that writes resources, and where the review refuses it: nothing that was typed is lost."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from controlplane.accounts.principal import SYSTEM, Role
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.changesets.models import ChangeSet, ChangeSetEntry
from controlplane.changesets.selectors import change_set_get
from controlplane.changesets.services import change_set_approve
from controlplane.changesets.values import SetState
from controlplane.console.pages import PART as PART_HEADER
from controlplane.database.aliases import READER
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA, SignIn, page
from tests.web.proposals import EDIT, HERE, NEW, PAY, forms, newest, proposed, review, state, submitted, text, version

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

PART = {PART_HEADER: "1"}
SECRET = """"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: key
generic_secret: {secret: {inline_string: hunter2}}
"""


def test_propose__new_resource__goes_into_a_new_set_or_one_that_is_there(two_editors: tuple[Client, Client]) -> None:
    author, _ = two_editors
    form = {"text": text("fresh"), "revision": "0", "message": "why not", "action": "propose", "set_into": ""}

    assert author.post(NEW, form).status_code == 302
    first = newest()
    assert (first.title, first.message) == ("why not", "why not")
    shown = page(author, f"{NEW}?set={first.public_id}")
    [value] = re.findall(rf'<option value="({first.public_id}:1)" selected>', shown)
    answer = author.post(NEW, {**form, "text": text("second"), "set_into": value}, headers=PART)

    assert (answer.status_code, answer["Location"]) == (201, f"/change-sets/{first.public_id}")
    assert [each.name for each in change_set_get(public_id=str(first.public_id)).entries] == ["fresh", "second"]
    assert not Resource.objects.exists()


def test_propose__into_one_that_is_approved__says_before_that_approvals_are_void(
    two_editors: tuple[Client, Client],
) -> None:
    made = submitted("pay")
    change_set_approve(public_id=made, actor=SYSTEM)
    shown = page(two_editors[0], NEW)
    others = shown.partition('<optgroup label="Become a draft again; every approval is void">')[2]
    assert f'value="{made}:2"' in others
    assert "(approved, 1 approval)" in others

    form = {"text": text("more"), "action": "propose", "set_into": f"{made}:2"}
    assert two_editors[0].post(NEW, form).status_code == 302

    assert (state(made), change_set_get(public_id=made).view.approvals) == (SetState.DRAFT, 0)


@pytest.mark.parametrize("headers", [{}, PART])
def test_propose__set_that_writes_it_already_or_was_edited__is_refused_and_keeps_the_text(
    headers: dict[str, str], two_editors: tuple[Client, Client], written: str
) -> None:
    made = proposed("pay")
    form = {"text": text() + "# mine\n", "revision": "2", "message": "typed", "action": "propose", "set_title": "named"}

    twice = two_editors[0].post(EDIT, {**form, "set_into": f"{made}:1"}, headers=headers)
    old = two_editors[0].post(NEW, {**form, "text": text("x") + "# mine\n", "set_into": f"{made}:7"}, headers=headers)
    untitled = two_editors[0].post(EDIT, {**form, "message": "", "set_title": "", "set_into": ""}, headers=headers)

    assert [each.status_code for each in (twice, old, untitled)] == [409, 409, 422]
    assert "writes or deletes the cluster" in twice.content.decode()
    assert "is at version 1" in old.content.decode()
    assert "The title of a change set" in untitled.content.decode()
    if not headers:
        assert all("# mine" in each.content.decode() for each in (twice, old, untitled))
        assert 'value="named"' in twice.content.decode()
        assert f'<option value="{made}:1" selected>' in twice.content.decode()
    assert [each.base for each in change_set_get(public_id=made).entries] == [2]
    assert ChangeSet.objects.count() == 1


def test_propose__text_of_an_older_revision__is_stale_and_shows_by_what(
    two_editors: tuple[Client, Client], written: str
) -> None:
    form = {"text": text(), "revision": "1", "action": "propose", "set_title": "mine", "set_into": ""}

    assert two_editors[0].post(EDIT, form).status_code == 302

    detail = change_set_get(public_id=str(newest().public_id))
    assert detail.view.state is SetState.STALE
    assert [(each.base, each.now, each.change) for each in detail.moved] == [(1, 2, written)]


def test_propose__deletion_and_restoration__are_asked_into_which_set(
    two_editors: tuple[Client, Client], written: str
) -> None:
    author, _ = two_editors
    for form in ({"delete": "1", "message": "not used"}, {"restore": "1", "message": "it was good"}):
        asked = author.post(PAY, {**form, "action": "propose"})
        assert asked.status_code == 200
        [question] = [each for each in forms(asked.content.decode()) if "set_title" in each]
        question["set_into"] = [""]
        untitled = author.post(PAY, {**question, "message": "", "action": "propose"})
        assert untitled.status_code == 422
        assert "The title of a change set" in untitled.content.decode()
        answer = author.post(PAY, {**question, "action": "propose"})
        assert (answer.status_code, newest().title) == (302, form["message"])
    first, second = ChangeSetEntry.objects.order_by("pk")
    assert (first.blob, first.base) == (None, 2)
    assert (second.blob is not None, second.base) == (True, 2)
    assert Resource.objects.get(name="pay").counter == 2


def _restored(who: Client) -> Any:
    return who.post(PAY, {"restore": "1", "message": "it was good"})


def _deleted(who: Client) -> Any:
    return who.post(PAY, {"delete": "1", "message": "not used"})


def _imported(who: Client) -> Any:
    return who.post(f"{HERE}/import", {"action": "save", "text": text("fresh"), "message": "all of it", "owner": ""})


def _edited(who: Client) -> Any:
    return who.post(EDIT, {"action": "save", "text": text(), "revision": "2", "message": "all of it"})


def _new(who: Client) -> Any:
    return who.post(NEW, {"action": "save", "text": text("fresh"), "revision": "0", "message": "all of it"})


@pytest.mark.parametrize("write", [_restored, _deleted, _imported, _edited, _new], ids=lambda each: each.__name__)
def test_write__review_is_required__asks_and_loses_nothing(
    write: Callable[[Client], Any], two_editors: tuple[Client, Client], sign_in: SignIn, written: str
) -> None:
    review()
    before = Change.objects.count()

    refused = write(two_editors[0])

    shown = refused.content.decode()
    assert refused.status_code == 409
    assert "break-glass" not in shown  # an editor may not
    [question] = [each for each in forms(shown) if "set_title" in each]
    assert question["message"][0]
    question["set_into"] = [""]
    answer = two_editors[0].post(
        refused.wsgi_request.get_full_path(), {**question, "action": "propose", "set_title": "named"}
    )
    assert (answer.status_code, newest().title) == (302, "named")
    assert Change.objects.count() == before

    # Who has the role may go past it, with a reason.
    asked = write(sign_in(None, ""))
    [breaking] = [each for each in forms(asked.content.decode()) if "break_glass" in each]
    for reason in (" ", "x" * 301):
        again = sign_in(None, "").post(refused.wsgi_request.get_full_path(), {**breaking, "break_glass": reason})
        assert again.status_code == 409
    assert Change.objects.count() == before
    done = sign_in(None, "").post(refused.wsgi_request.get_full_path(), {**breaking, "break_glass": "the shop is down"})
    assert done.status_code == 302
    assert Change.objects.latest("pk").message.endswith("went past the review: the shop is down")


def test_write__review_is_required_and_the_text_holds_a_secret__is_asked_for_it_again(sign_in: SignIn) -> None:
    review()
    admin = sign_in(None, "")

    for path, form in ((NEW, {"revision": "0"}), (f"{HERE}/import", {"owner": ""})):
        refused = admin.post(path, {**form, "action": "save", "text": SECRET, "message": "kept"})
        shown = refused.content.decode()
        assert refused.status_code == 409
        assert "hunter2" not in shown
        assert shown.count("<textarea") == 2
        assert len(set(re.findall(r'<textarea[^>]* id="([^"]*)"', shown))) == 2
        [question] = [each for each in forms(shown) if "set_title" in each]
        assert question["message"] == ["kept"]
        answer = admin.post(path, {**question, "action": "propose", "text": SECRET})
        assert answer.status_code == 302
        assert "hunter2" not in page(admin, answer["Location"])


def test_editor_with_scripts__review_is_required__asks_in_the_open_page(
    two_editors: tuple[Client, Client], sign_in: SignIn
) -> None:
    review()
    form = {"action": "save", "text": text("fresh"), "revision": "0"}

    refused, asked = two_editors[0].post(NEW, form, headers=PART), sign_in(None, "").post(NEW, form, headers=PART)

    assert (refused.status_code, asked.status_code) == (409, 409)
    assert 'name="break_glass"' not in refused.content.decode()
    assert 'name="break_glass"' in asked.content.decode()
    done = sign_in(None, "").post(NEW, {**form, "break_glass": "now"}, headers=PART)
    assert done.status_code == 201


def test_import__proposed_with_what_its_owner_has_no_more__writes_and_deletes(
    two_editors: tuple[Client, Client], written: str
) -> None:
    Resource.objects.filter(name="pay").update(owner="shop")
    form = {"action": "propose", "text": text("fresh"), "owner": "shop", "prune": "1", "set_title": "all of it"}

    assert two_editors[0].post(f"{HERE}/import", form).status_code == 302

    entries = change_set_get(public_id=str(newest().public_id)).entries
    assert [(each.name, each.deletes) for each in entries] == [("fresh", False), ("pay", True)]


def test_entry__edited_by_two__refuses_the_second_and_then_knows(
    two_editors: tuple[Client, Client], written: str
) -> None:
    author, other = two_editors
    made = proposed("pay", "shop")
    entry = f"/change-sets/{made}/resource?type=cluster&name=pay"
    assert (
        author.post(entry, {"text": text(timeout="5s"), "revision": "2", "version": "1", "action": "save"}).status_code
        == 302
    )
    mine = {"text": text(timeout="6s") + "# mine\n", "revision": "2", "version": "1", "action": "save"}

    refused, part = other.post(entry, mine), other.post(entry, mine, headers=PART)

    assert (refused.status_code, part.status_code) == (409, 409)
    assert "# mine" in refused.content.decode()
    assert "Somebody edited the change set since" in part.content.decode()
    [form] = [each for each in forms(refused.content.decode()) if "revision" in each]
    assert form["version"][-1] == "2"
    assert other.post(entry, {**mine, "version": "2"}).status_code == 302
    assert "6s" in page(author, entry)


def test_entry__saved_while_the_stored_one_moved__stays_stale(two_editors: tuple[Client, Client], written: str) -> None:
    made = proposed("pay")
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay", connect_timeout="9s")))], actor=DANA)
    entry = f"/change-sets/{made}/resource?type=cluster&name=pay"

    saved = two_editors[0].post(entry, {"text": text(timeout="5s"), "revision": "2", "version": "1", "action": "save"})

    assert saved.status_code == 302
    assert state(made) is SetState.STALE


def test_entry__of_a_secret__keeps_the_value_and_never_shows_it(two_editors: tuple[Client, Client]) -> None:
    author, _ = two_editors
    made_by = author.post(NEW, {"action": "propose", "text": SECRET, "set_title": "a key", "set_into": ""})
    made = str(newest().public_id)
    entry = f"/change-sets/{made}/resource?type=secret&name=key"

    shown = page(author, entry)
    assert "hunter2" not in shown + page(author, made_by["Location"])
    kept = html.unescape(shown.partition('id="text"')[2].partition(">")[2].partition("</textarea>")[0])
    assert "<kept:" in kept
    saved = author.post(entry, {"text": kept + "# a word\n", "revision": "0", "version": "1", "action": "save"})

    assert saved.status_code == 302, saved.content.decode()
    assert version(made) == 1  # the same content


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_entry__who_may_not_propose__is_refused(role: Role, sign_in: SignIn, written: str) -> None:
    made = proposed("pay")

    assert sign_in(role, "default").get(f"/change-sets/{made}/resource?type=cluster&name=pay").status_code == 403
