"""The editor and the import: every finding with its line, nothing stored unless all of it is sound, no secret back."""

import html
import re
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import Role
from controlplane.catalog.selectors import resource_get
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import ChangeMade, Delete, Put
from controlplane.console.starters import STARTERS
from tests.api.conftest import limited
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA, SignIn
from xdscore.resource_types import CLUSTER, by_word
from xdscore.schema import Media, ParsedResource, may_hold_secrets, parse, read_manifests

pytestmark = pytest.mark.django_db

NEW = "/e/default/resources/new"
EDIT = "/e/default/resource/edit?type=cluster&name=pay"
PART = {"X-Parley-Part": "1"}
SOUND = '"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: pay\nconnect_timeout: 3s\n'
CANARY = "canary-5f1c7a"
SECRET = f"""\
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: key
generic_secret: {{secret: {{inline_string: {CANARY}}}}}
"""


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in(Role.EDITOR, "default")


def test_check__two_mistakes__tells_both_with_their_lines(editor: Client) -> None:
    text = SOUND.replace("3s", "-3s") + "lb_polcy: RANDOM\n"

    answer = editor.post(NEW, {"text": text, "action": "check"}, headers=PART)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'data-line="3"' in page
    assert 'data-line="4"' in page
    assert "2 problems" in page


def test_check__text_that_is_no_yaml__tells_the_line(editor: Client) -> None:
    answer = editor.post(NEW, {"text": "name: [pay\n", "action": "check"}, headers=PART)

    assert answer.status_code == 400
    assert 'data-line="' in answer.content.decode()


def test_check__sound_text__shows_the_difference_and_stores_nothing(editor: Client, written: str) -> None:
    answer = editor.post(EDIT, {"text": SOUND, "revision": "2", "action": "check"}, headers=PART)

    page = answer.content.decode()
    assert answer.status_code == 200
    assert 'diff-removed"><td class="diff-sign">-</td><td><code>connect_timeout: 2s' in page
    assert 'diff-added"><td class="diff-sign">+</td><td><code>connect_timeout: 3s' in page
    assert "Who can see it" in page
    assert _revision() == 2


def test_check__without_scripts__keeps_the_text(editor: Client, written: str) -> None:
    page = editor.post(EDIT, {"text": SOUND + "# mine\n", "revision": "2", "action": "check"}).content.decode()

    assert "# mine" in page
    assert "What changes" in page


def test_check__no_envoy_has_read_it__says_so_with_the_way_out_unless_nothing_would_change(
    editor: Client, written: str
) -> None:
    same = SOUND.replace("3s", "2s")
    changed, unchanged = (
        editor.post(EDIT, {"text": text, "revision": "2", "action": "check"}, headers=PART).content.decode()
        for text in (SOUND, same)
    )
    imported = editor.post("/e/default/import", {"text": SOUND, "action": "check"}).content.decode()

    for page in (changed, imported):
        assert "Not read by an Envoy: deep validation is off in &#x27;default&#x27;. An administrator turns" in page
        assert "Sound" in page
    assert "Not read by an Envoy" not in unchanged


@pytest.mark.parametrize("headers", [{}, PART])
def test_save__sound_text__leads_to_the_change(editor: Client, written: str, headers: dict[str, str]) -> None:
    given = {"text": SOUND, "revision": "2", "message": "three", "action": "save"}

    answer = editor.post(EDIT, given, headers=headers)

    assert answer.status_code == (201 if headers else 302)
    assert answer["Location"].startswith("/changes/")
    assert "three" in editor.get(answer["Location"]).content.decode()
    assert _revision() == 3


def test_save__somebody_wrote_meanwhile__is_refused(editor: Client, written: str) -> None:
    answer = editor.post(EDIT, {"text": SOUND, "revision": "1", "action": "save"})

    assert answer.status_code == 412
    assert "is at revision r2" in answer.content.decode()
    assert _revision() == 2


@pytest.mark.parametrize("headers", [{}, PART])
@pytest.mark.parametrize("action", ["check", "save"])
def test_new__name_that_is_taken__is_refused_with_the_way_to_the_one_that_is_there(
    editor: Client, written: str, action: str, headers: dict[str, str]
) -> None:
    answer = editor.post(NEW, {"text": SOUND, "action": action, "message": "why"}, headers=headers)

    page = html.unescape(answer.content.decode())
    assert answer.status_code == 409
    assert "There is a cluster 'pay' in 'default' already, at revision r2." in page
    assert 'data-line="2"' in page  # the line of the name
    assert 'href="/e/default/resource?type=cluster&name=pay"' in page
    assert f'formaction="{EDIT}"' in page
    assert _revision() == 2
    if not headers:
        assert "connect_timeout: 3s" in page  # nothing typed is lost
        assert 'value="why"' in page


def test_new__name_that_is_taken__the_text_can_be_made_an_edit_of_that_one(editor: Client, written: str) -> None:
    carried = editor.post(EDIT, {"text": SOUND, "revision": "0", "action": "instead", "message": "why"})

    page = html.unescape(carried.content.decode())
    assert carried.status_code == 200
    assert "connect_timeout: 3s" in page.partition("</textarea>")[0]
    assert 'name="revision" value="2"' in page
    assert 'value="why"' in page
    assert "saving updates cluster" in page
    assert _revision() == 2
    saved = editor.post(EDIT, {"text": SOUND, "revision": "2", "action": "save"})
    assert (saved.status_code, _revision()) == (302, 3)


def test_new__taken_by_a_secret__offers_no_way_to_take_the_text_along(editor: Client) -> None:
    editor.post(NEW, {"text": SECRET, "action": "save"})

    answer = editor.post(NEW, {"text": SECRET.replace(CANARY, "other"), "action": "save"}, headers=PART)

    page = answer.content.decode()
    assert answer.status_code == 409
    assert "formaction" not in page
    assert "is not taken along" in page


def test_new__name_that_somebody_takes_meanwhile__is_refused_in_the_same_words(
    editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(**given: Any) -> ChangeMade:
        change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=DANA)
        return change_apply(**given)

    monkeypatch.setattr("controlplane.console.drafts.change_apply", first)

    answer = editor.post(NEW, {"text": SOUND, "action": "save"}, headers=PART)

    assert answer.status_code == 409
    assert "already, at revision r1" in answer.content.decode()


def test_new__name_that_was_deleted__is_free(editor: Client, written: str) -> None:
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "pay")], actor=DANA)

    answer = editor.post(NEW, {"text": SOUND, "action": "save"})

    assert answer.status_code == 302
    assert _revision() == 4


def test_starter__its_name_is_taken__proposes_the_next_that_is_free_here(editor: Client, written: str) -> None:
    def proposed(word: str) -> str:
        text = editor.get(f"{NEW}?type={word}").content.decode().partition('id="text"')[2]
        return str(re.findall(r"^(?:cluster_)?name: (.*)$", text, re.MULTILINE)[0])

    assert [proposed("cluster"), proposed("endpoint"), proposed("route")] == ["pay-2", "pay", "edge-2"]
    names = [f"pay-{number}" for number in range(2, 51) if number != 7]
    change_apply(environment_key="default", edits=[Put(parsed(cluster(name))) for name in names], actor=DANA)
    assert proposed("cluster") == "pay-7"
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay-7")))], actor=DANA)
    assert proposed("cluster") == "pay-51"


@pytest.mark.parametrize("action", ["check", "save"])
@pytest.mark.parametrize("headers", [{}, PART])
@pytest.mark.parametrize("path", [NEW, "/e/default/import"])
@pytest.mark.parametrize(
    "text", [SECRET, SECRET + "wrong: 1\n", SECRET + "  wrong\n", SECRET.replace("generic", "genric")]
)
def test_secret__in_a_text__is_in_no_answer(
    editor: Client, action: str, headers: dict[str, str], path: str, text: str
) -> None:
    answer = editor.post(path, {"text": text, "action": action}, headers=headers, follow=True)

    assert CANARY not in answer.content.decode()


def test_secret__stored__is_on_no_page(editor: Client) -> None:
    editor.post(NEW, {"text": SECRET, "action": "save"})
    question = "?type=secret&name=key"

    pages = [editor.get(f"/e/default/resource{part}{question}") for part in ("", "/edit")]
    pages += [editor.get(f"/e/default/resource{question}&tab={tab}") for tab in ("history", "access")]

    assert [page.status_code for page in pages] == [200] * 4
    assert all(CANARY not in page.content.decode() for page in pages)
    assert "&lt;kept:" in pages[0].content.decode()


def test_export__imported_again__changes_nothing(editor: Client, written: str) -> None:
    editor.post(NEW, {"text": SECRET, "action": "save"})
    file = editor.get("/e/default/export").content.decode()

    answer = editor.post("/e/default/import", {"text": file, "action": "save"}, follow=True)

    assert CANARY not in file
    assert "pay" in file
    assert "Nothing had to change" in answer.content.decode()


def test_import__one_of_two_is_wrong__stores_neither(editor: Client, written: str) -> None:
    answer = editor.post("/e/default/import", {"text": f"{SOUND}---\n{SOUND}name: 1\n", "action": "save"})

    assert answer.status_code in (400, 422)
    assert _revision() == 2


SPELLED = SOUND.replace("3s", "{seconds: 7}")


def test_import__other_spellings__are_warned_of_stay_with_the_change_and_are_refused_when_asked(
    editor: Client, written: str
) -> None:
    form = {"text": SPELLED}
    refused = [editor.post("/e/default/import", {**form, "strict": "1", "action": each}) for each in ("check", "save")]
    checked = editor.post("/e/default/import", {**form, "action": "check"}).content.decode()
    saved = editor.post("/e/default/import", {**form, "action": "save"}, follow=True).content.decode()

    assert [each.status_code for each in refused] == [422, 422]
    assert all('name="strict" value="1" checked' in each.content.decode() for each in refused)
    for page in (*(each.content.decode() for each in refused), checked, saved):
        assert page.count("Write &quot;7s&quot;.") == 1
    assert _revision() == 3


def test_resource__deleted_and_restored_by_its_page__is_back(editor: Client, written: str) -> None:
    page = "/e/default/resource?type=cluster&name=pay"
    editor.post(page, {"delete": "1", "message": "no more"})
    gone = editor.get(page).content.decode()
    editor.post(page, {"restore": "1", "message": "once more"})

    assert "It was deleted" in gone
    assert _revision() == 4


def test_pages__name_and_message_that_are_markup__are_shown_and_not_run(editor: Client) -> None:
    hostile = "<img src=x onerror=alert(1)>'\"&"
    change_apply(
        environment_key="default",
        edits=[Put(parsed(cluster(hostile)))],
        actor=DANA,
        message=hostile,
        terms=Terms(hostile),
    )

    for path in ("/e/default/resources", "/e/default/changes"):
        page = editor.get(path)
        assert page.status_code == 200
        assert "<img src=x" not in page.content.decode()
    answer = editor.get("/e/default/resource", {"type": "cluster", "name": hostile})
    assert answer.status_code == 200
    assert "<img src=x" not in answer.content.decode()


@pytest.mark.parametrize("word", STARTERS)
def test_starter__of_each_type__is_sound(word: str) -> None:
    free = STARTERS[word].free(lambda names: names[:1])
    manifests, findings = read_manifests(free.encode(), Media.YAML)

    result = parse(manifests[0])

    assert findings == ()
    assert isinstance(result, ParsedResource), result
    assert (result.type, result.name) == (by_word[word], f"{STARTERS[word].name}-2")
    assert STARTERS[word].free(lambda _names: ()) == STARTERS[word].text


def test_may_hold_secrets__text__is_judged_by_the_fields_it_names() -> None:
    assert may_hold_secrets("private_key:\n  filename: x")
    assert may_hold_secrets('{"privateKey": 1')
    assert not may_hold_secrets(SOUND)


def _revision() -> int:
    return resource_get(environment_key="default", kind=CLUSTER, name="pay").revision


def test_complete__half_written_key__gives_the_fields_of_its_message(editor: Client) -> None:
    before = SOUND + "load_assignment:\n  endp"

    new = editor.post(NEW, {"action": "complete", "before": before}).json()
    known = editor.post(EDIT, {"action": "complete", "before": "conn"}).json()

    assert new["word"] == "endp"
    assert new["options"][0] == {"label": "endpoints", "kind": "field", "detail": "list of LocalityLbEndpoints"}
    assert known["options"][0]["label"] == "connect_timeout"


def test_complete__where_nobody_knows_or_far_too_much__is_empty(editor: Client, settings: Settings) -> None:
    limited(settings, body_bytes=100)

    nothing = editor.post(NEW, {"action": "complete", "before": "a: {b"})
    much = editor.post(NEW, {"action": "complete", "before": SOUND * 10 + "conn"})

    assert nothing.json() == much.json() == {"word": "", "options": []}


def test_complete__viewer__is_refused(sign_in: SignIn) -> None:
    assert sign_in(Role.VIEWER, "default").post(NEW, {"action": "complete", "before": ""}).status_code == 403
