"""The import page: what would become of each resource, what was left out and why, and what was chosen of it."""

import html
import json
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.selectors import resource_get
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Put
from controlplane.changesets.models import ChangeSetEntry
from controlplane.database.aliases import READER
from tests.services.undo.hands import put
from tests.support.manifests import cluster, endpoints, parsed, route, tls_secret
from tests.web.conftest import DANA, HOSTILE, SignIn, assert_harmless
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

IMPORT = "/e/default/import"
BOOTSTRAP = """\
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
node: {id: edge-1}
static_resources:
  clusters:
  - {name: pay, connect_timeout: 1s}
stats_sinks: []
"""


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in(Role.EDITOR, "default")


def shown(answer: Any) -> str:
    return html.unescape(" ".join(answer.content.decode().split()))


def checked(client: Client, *trees: dict[str, Any], **fields: Any) -> tuple[str, dict[str, Any]]:
    """What the page says of these manifests, and its form as a browser would send it."""
    answer = client.post(IMPORT, {"text": json.dumps(trees), "action": "check", **fields})
    return shown(answer), form_of(answer)


class Sent(HTMLParser):
    """What a browser would send of a page's forms, without buttons."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, list[str]] = {}
        self._typing = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, kind = given.get("name") or "", given.get("type") or "text"
        if tag == "textarea" and name:
            self.fields.setdefault(name, []).append("")
            self._typing = name
        elif tag == "input" and name and kind != "file" and (kind not in ("checkbox", "radio") or "checked" in given):
            self.fields.setdefault(name, []).append(given.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        self._typing = "" if tag == "textarea" else self._typing

    def handle_data(self, data: str) -> None:
        if self._typing:
            self.fields[self._typing][-1] += data


def form_of(answer: Any) -> dict[str, Any]:
    """The form of the page's main part as a browser would send it."""
    page = answer.content.decode()
    fields = dict(Sent(page[page.index('id="import"') :]).fields)
    assert fields["looked"] == ["1"]
    return fields


def present() -> list[str]:
    return list(Resource.objects.filter(deleted=False).order_by("type", "name").values_list("name", flat=True))


def test_check__of_several__says_what_becomes_of_each_with_its_difference_and_stores_nothing(editor: Client) -> None:
    put(cluster("old"), cluster("same"), cluster("pay"))
    Resource.objects.update(owner="shop")
    before = Change.objects.count()

    page, form = checked(
        editor, cluster("pay", connect_timeout="9s"), cluster("same"), cluster("new"), owner="shop", prune="1"
    )

    assert "Sound; 3 resources would change" in page
    heads = [
        f'<span>{word}</span></span> <span class="quiet">cluster</span> <b class="foreign">{name}</b>'
        for word, name in (("taken out", "old"), ("changed", "pay"), ("new", "new"))
    ]
    assert [page.index(each) for each in heads] == sorted(page.index(each) for each in heads)
    assert "1 is stored already as written" in page
    assert "<code>connect_timeout: 9s</code>" in page
    assert [each.split(" ")[-1] for each in form["pick"]] == ["old", "pay", "new"]
    assert Change.objects.count() == before


def test_check__of_a_bootstrap_and_a_dump__lists_what_is_left_out_with_place_and_reason(editor: Client) -> None:
    dump = {
        "configs": [
            {
                "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
                "static_clusters": [{"cluster": cluster("xds")}],
                "dynamic_active_clusters": [{"cluster": cluster("shop")}, {"name": "warm"}],
            }
        ]
    }
    files = [
        SimpleUploadedFile("edge.yaml", BOOTSTRAP.encode()),
        SimpleUploadedFile("d.json", json.dumps(dump).encode()),
    ]

    page = shown(editor.post(IMPORT, {"file": files, "text": "", "action": "check"}))

    assert "Sound; 2 resources would change" in page
    assert "Left out: 5" in page
    left = page[page.index("Left out:") :]
    for place, code, said in (
        ("edge.yaml, line 1", "XDS1062", "The section 'admin' holds nothing that Parley serves."),
        ("edge.yaml, line 2", "XDS1062", "The section 'node' holds"),
        ("edge.yaml, line 6", "XDS1062", "The section 'stats_sinks' holds"),
        ("d.json, line 1", "XDS1060", "1 static resources of 'static_clusters'"),
        ("d.json, line 1", "XDS1131", "'warm' of 'dynamic_active_clusters' was left out"),
    ):
        assert f'<b class="foreign">{place}</b>' in left
        assert code in left
        assert said in left


def test_save__of_what_is_ticked__stores_that_alone_as_one_change(editor: Client) -> None:
    put(cluster("old"))
    Resource.objects.update(owner="shop")
    _, form = checked(editor, cluster("a"), cluster("b"), owner="shop", prune="1")

    # Not ticked is not written, and is not what the owner has no more, either.
    picks = [each for each in form["pick"] if not each.endswith(" b")]
    answer = editor.post(IMPORT, {**form, "pick": picks, "action": "save", "message": "most of it"})

    assert (answer.status_code, present()) == (302, ["a"])
    assert Change.objects.latest("pk").message == "most of it"
    assert Resource.objects.get(name="a").owner == "shop"


def test_save__uploaded_files__are_sent_again_as_text_and_not_chosen_twice(editor: Client) -> None:
    files = [SimpleUploadedFile(f"{name}.json", json.dumps(cluster(name)).encode()) for name in ("a", "b")]
    form = form_of(editor.post(IMPORT, {"file": files, "text": "", "action": "check"}))

    assert form["source"] == ["", "a.json", "b.json"]
    assert editor.post(IMPORT, {**form, "action": "save"}).status_code == 302
    assert present() == ["a", "b"]


@pytest.mark.parametrize("moved", ["changed", "gone", "there", "same", "text", "more"])
def test_save__something_moved_since_it_was_seen__says_what_and_stores_nothing(editor: Client, moved: str) -> None:
    put(cluster("pay"), cluster("shop"))
    trees = [cluster("pay", connect_timeout="9s"), cluster("fresh")]
    _, form = checked(editor, *trees)
    if moved == "changed":
        put(cluster("pay", connect_timeout="5s"))
    elif moved == "gone":
        editor.post("/e/default/resource?type=cluster&name=pay", {"delete": "1", "message": "no more"})
    elif moved == "there":
        put(cluster("fresh", connect_timeout="5s"))
    elif moved == "same":
        put(cluster("fresh"))
    elif moved == "text":
        form["text"] = json.dumps([cluster("pay", connect_timeout="8s"), cluster("fresh")])
    else:
        form["text"] = json.dumps([*trees, cluster("more")])
    before = Change.objects.count()

    answer = editor.post(IMPORT, {**form, "action": "save"})

    page = shown(answer)
    assert answer.status_code == 409
    assert {
        "changed": "The cluster 'pay' was at r1 when you looked, and is at r2.",
        "gone": "The cluster 'pay' was at r1 when you looked, and is not there.",
        "there": "The cluster 'fresh' was not there when you looked, and is at r1.",
        "same": "The cluster 'fresh' is stored already as it is written here.",
        "text": "The cluster 'pay' would be written otherwise than you saw: the text is another.",
        "more": "The cluster 'more' would change, too, and was not there when you looked.",
    }[moved] in page
    assert Change.objects.count() == before
    # The page shows how things stand now, and what it shows now can be stored.
    assert editor.post(IMPORT, {**form_of(answer), "action": "save"}).status_code == 302


def test_check__one_is_turned_down__shows_why_and_takes_the_others_and_nothing_out(editor: Client) -> None:
    put(cluster("old"))
    Resource.objects.update(owner="shop")

    answer = editor.post(
        IMPORT,
        {
            "text": json.dumps([cluster("a"), cluster("b", connect_timeout="never"), {"name": "c"}]),
            "owner": "shop",
            "prune": "1",
            "action": "check",
        },
    )

    page = shown(answer)
    assert answer.status_code == 422
    assert "2 manifests are turned down; 1 resource would change" in page
    assert "XDS1010" in page  # no type: not even its type is known
    assert editor.post(IMPORT, {**form_of(answer), "action": "save"}).status_code == 302
    assert present() == ["a", "old"]


def test_check__again_after_some_were_left__keeps_them_left_and_takes_what_was_mended(editor: Client) -> None:
    _, form = checked(editor, cluster("a"), cluster("b"))
    form["pick"] = [each for each in form["pick"] if each.endswith(" a")]
    form["text"] = json.dumps([cluster("a"), cluster("b"), cluster("c")])

    again = form_of(editor.post(IMPORT, {**form, "action": "check"}))

    assert [each.split(" ")[-1] for each in again["pick"]] == ["a", "c"]


def test_save__nothing_is_ticked__says_so(editor: Client) -> None:
    _, form = checked(editor, cluster("a"))

    answer = editor.post(IMPORT, {**form, "pick": [], "action": "save"})

    assert answer.status_code == 422
    assert "Nothing is chosen" in shown(answer)


def test_propose__what_is_ticked__is_in_a_change_set(editor: Client) -> None:
    _, form = checked(editor, cluster("a"), cluster("b"))

    answer = editor.post(IMPORT, {**form, "pick": form["pick"][:1], "action": "propose", "set_title": "some"})

    assert (answer.status_code, present()) == (302, [])
    assert list(ChangeSetEntry.objects.values_list("name", flat=True)) == ["a"]


def test_secrets__are_on_no_page_and_asked_for_again(editor: Client) -> None:
    tree = tls_secret("key", "CANARY-1")
    page, form = checked(editor, tree)

    assert "CANARY" not in page
    assert "text" not in form or form["text"] == [""]
    assert "CANARY" not in shown(editor.post(IMPORT, {**form, "text": "", "action": "save"}))
    other = editor.post(IMPORT, {**form, "text": json.dumps([tls_secret("key", "CANARY-2")]), "action": "save"})
    assert "would be written otherwise than you saw" in shown(other)
    assert "CANARY" not in shown(other)
    assert editor.post(IMPORT, {**form, "text": json.dumps([tree]), "action": "save"}).status_code == 302


def test_labels__alone_differ__are_shown_and_set(editor: Client) -> None:
    put(cluster("pay"))
    page, form = checked(editor, cluster("pay") | {"@labels": {"team": "pay"}})

    assert "<code>'@labels':</code>" in page or '<code>"@labels":</code>' in page
    assert editor.post(IMPORT, {**form, "action": "save"}).status_code == 302
    assert resource_get(environment_key="default", kind=CLUSTER, name="pay").labels == {"team": "pay"}


@pytest.mark.parametrize("field", ["pick", "rest", "offered"])
@pytest.mark.parametrize("value", ["cluster", "gadget r1 x pay", "cluster r1 x", "cluster rx x pay", "\x00"])
def test_choice__that_no_page_wrote__is_turned_down(editor: Client, field: str, value: str) -> None:
    _, form = checked(editor, cluster("a"))

    answer = editor.post(IMPORT, {**form, field: value, "action": "save"})

    assert answer.status_code == 422
    assert "names something that is no resource" in shown(answer)


def test_names__of_files_and_resources__are_harmless(editor: Client) -> None:
    file = SimpleUploadedFile("<script>alert(1)</script>.yaml", json.dumps([cluster(HOSTILE)]).encode())
    wrong = SimpleUploadedFile("<img src=x onerror=alert(1)>.yaml", b"a: [")

    assert_harmless(editor.post(IMPORT, {"file": [file], "action": "check"}).content.decode())
    answer = editor.post(IMPORT, {"file": [file, wrong], "action": "check"})
    assert answer.status_code == 400
    assert "Cannot be imported" in shown(answer)


def test_limits__more_files_or_resources_than_are_taken__are_said(editor: Client) -> None:
    files = [SimpleUploadedFile(f"{number}.json", json.dumps(cluster(f"c-{number}")).encode()) for number in range(51)]

    assert "51 files at once; at most 50 are taken." in shown(editor.post(IMPORT, {"file": files, "action": "check"}))
    assert "At most 50 files, 64 MiB and 20000 resources at once." in shown(editor.get(IMPORT))


def test_many__more_than_can_be_ticked__are_taken_as_a_whole_within_few_queries(
    editor: Client, django_assert_max_num_queries: Any
) -> None:
    trees = [cluster(f"c-{number:03}") for number in range(410)]
    with django_assert_max_num_queries(40):
        page, form = checked(editor, *trees)

    assert len(form["pick"]) == 400
    assert "And 10 more that would change, which are taken as a whole" in page
    assert editor.post(IMPORT, {**form, "action": "save"}).status_code == 302
    assert len(present()) == 410


def test_check__clients_would_lose_something__says_so_for_what_is_ticked(editor: Client) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=DANA, terms=Terms("team"))
    page, form = checked(editor, endpoints("pay", 80), route("edge", "pay"), owner="team", prune="1")

    assert "No connected client loses anything." in page
    assert len(form["pick"]) == 3
