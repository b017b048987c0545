"""Choosing resources in the list, and one act upon all of them: what the page says before, and what it does."""

import html
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change, Quarantine, Resource
from controlplane.catalog.review import ReviewSettings
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.changesets.models import ChangeSetEntry
from controlplane.common.limits import Limit
from controlplane.database.aliases import READER
from tests.services.undo.hands import put, settings
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA, HOSTILE, USERS, SignIn, assert_harmless, page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

LIST = "/e/default/resources"
BULK = f"{LIST}/bulk"


@pytest.fixture
def admin(sign_in: SignIn) -> Client:
    return sign_in(None, "default")


def shown(content: bytes) -> str:
    return html.unescape(" ".join(content.decode().split()))


def sent(client: Client, status: int = 200, **form: Any) -> str:
    answer = client.post(BULK, form)
    assert answer.status_code == status, shown(answer.content)
    return shown(answer.content)


def labels(name: str) -> str:
    return Resource.objects.get(name=name).labels


def test_list__of_an_editor__has_a_box_for_each_and_the_acts_that_they_may_do(sign_in: SignIn) -> None:
    put(cluster("pay"), cluster("shop"))

    editor, operator = (page(sign_in(role, "default"), LIST) for role in (Role.EDITOR, Role.OPERATOR))
    viewer = page(sign_in(Role.VIEWER, "default"), LIST)

    assert 'name="pick" value="cluster r1 pay"' in editor
    assert ["Quarantine" in each for each in (editor, operator)] == [False, True]
    assert ['value="delete"' in each for each in (editor, operator)] == [True, False]
    assert 'name="pick"' not in viewer


def test_list__filtered_by_labels__shows_those_and_says_what_it_cannot_read(admin: Client) -> None:
    put(cluster("pay"), cluster("shop"))
    sent(admin, 302, act="labels", pick="cluster r1 pay", labels="team=pay", sure="1")

    found, wrong = page(admin, f"{LIST}?label=team%3Dpay"), shown(admin.get(f"{LIST}?label=a in (b)").content)

    assert ["cluster r1 pay" in found, "cluster r1 shop" in found] == [True, False]
    assert '<span class="label">team=pay</span>' in found
    assert "Nothing is listed until it is right." in wrong
    exported = admin.get("/e/default/export?label=team%3Dpay").content.decode()
    assert ["@labels" in exported, "shop" in exported] == [True, False]


@pytest.mark.parametrize("act", ["labels", "owner", "restore", "quarantine", "release", "delete"])
def test_question__names_what_is_meant_and_changes_nothing(admin: Client, act: str) -> None:
    names = [f"c-{number:02}" for number in range(30)]
    put(*(cluster(name) for name in names))
    put(*(cluster(name, connect_timeout="2s") for name in names))
    before = Change.objects.count()

    asked = sent(admin, act=act, pick=[f"cluster r2 {name}" for name in names])

    assert "30 resources" in asked
    listed = asked.partition("What will happen")[2].partition("<form")[0]
    assert [name in listed for name in (names[24], names[25])] == [True, False]
    assert "And 5 more: 30 in all." in asked
    assert Change.objects.count() == before


def test_delete__of_all_that_fit_the_filter__is_one_change_at_the_revisions_that_were_shown(admin: Client) -> None:
    put(cluster("pay"), cluster("pay-eu"), cluster("shop"))

    asked = sent(admin, act="delete", all="1", f_name="pay", pick="cluster r1 shop")
    chosen = asked.partition('name="chosen" value="')[2].partition('"')[0]
    put(cluster("pay-new"))
    done = admin.post(
        BULK, {"act": "delete", "chosen": "cluster r1 pay\r\ncluster r1 pay-eu", "sure": "1", "f_name": "pay"}
    )

    assert chosen == "cluster r1 pay cluster r1 pay-eu"
    assert "No connected client loses anything." in asked
    made = Change.objects.latest("pk")
    assert done["Location"] == f"/changes/{made.public_id}"
    assert set(Resource.objects.filter(deleted=False).values_list("name", flat=True)) == {"shop", "pay-new"}


@pytest.mark.parametrize(
    "narrow", [{"f_author": "somebody"}, {"f_since": "2999-01-01"}, {"f_until": "2000-01-01"}, {"f_findings": "with"}]
)
def test_delete__of_all_that_fit__every_filter_of_the_list_counts(admin: Client, narrow: dict[str, str]) -> None:
    put(cluster("pay"), cluster("shop"))

    asked = sent(admin, 422, act="delete", all="1", **narrow)

    assert "cluster r1" not in asked
    assert not Resource.objects.filter(deleted=True).exists()


def test_delete__of_all_that_fit_a_filter_that_cannot_be_read__is_refused(admin: Client) -> None:
    put(cluster("pay"))

    asked = sent(admin, 422, act="delete", all="1", f_since="the other day", sure="1")

    assert "'Since' cannot be" in asked
    assert not Resource.objects.filter(deleted=True).exists()


def test_delete__written_since_it_was_shown__is_refused_by_name_and_nothing_typed_is_lost(admin: Client) -> None:
    put(cluster("pay"), cluster("shop"), cluster("calm"))
    put(cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))
    chosen = "cluster r1 pay\ncluster r1 shop\ncluster r1 calm"

    refused = sent(admin, 412, act="delete", chosen=chosen, sure="1", message="unused & old")

    assert "The cluster 'pay' is at revision r2" in refused
    assert "The cluster 'shop' is at revision r2" in refused
    assert 'value="unused & old"' in refused
    assert not Resource.objects.filter(deleted=True).exists()


def test_labels_and_owner__typed_wrong__are_told_with_what_was_typed(admin: Client) -> None:
    put(cluster("pay"))

    wrong = sent(admin, 422, act="labels", pick="cluster r1 pay", labels="-a=x team", sure="1")
    worse = sent(admin, 422, act="labels", pick="cluster r1 pay", labels="-a=x b=-", sure="1")

    assert "'team' is no label: write key=value, or key- to remove one." in wrong
    assert 'value="-a=x team"' in wrong
    assert worse.count("is not one of a label") == 2
    assert labels("pay") == ""


def test_change__of_labels_and_owners__says_whose_on_its_page_and_is_taken_back_there(admin: Client) -> None:
    put(cluster("pay"), cluster("shop"))
    for form in ({"act": "labels", "labels": "team=pay"}, {"act": "owner", "owner": "Pia"}):
        sent(admin, 302, pick=["cluster r1 pay", "cluster r1 shop"], sure="1", **form)
    owned, labelled = Change.objects.order_by("-pk")[:2]

    assert "+team=pay" in shown(admin.get(f"/changes/{labelled.public_id}").content)
    assert "owner: nobody → Pia" in shown(admin.get(f"/changes/{owned.public_id}").content)
    undo = f"/changes/{labelled.public_id}/undo"
    assert "The cluster 'pay' is labelled team-." in shown(admin.get(undo).content)
    admin.post(undo, {"reason": "wrong team"})
    assert (labels("pay"), Resource.objects.get(name="pay").owner) == ("", "Pia")


def test_delete__under_review__goes_into_a_change_set_and_labels_do_not(admin: Client) -> None:
    put(cluster("pay"), cluster("shop"))
    settings(review=ReviewSettings(required=True))
    chosen = "cluster r1 pay\ncluster r1 shop"

    refused = sent(admin, 409, act="delete", chosen=chosen, sure="1", message="unused")
    proposed = admin.post(
        BULK, {"act": "delete", "chosen": chosen, "sure": "1", "message": "unused", "action": "propose", "set_into": ""}
    )

    assert "takes reviewed change sets only" in refused
    assert proposed.status_code == 302
    assert list(ChangeSetEntry.objects.filter(blob=None).values_list("name", flat=True)) == ["pay", "shop"]
    assert not Resource.objects.filter(deleted=True).exists()
    sent(admin, 302, act="labels", chosen=chosen, labels="team=pay", sure="1")


def test_quarantine__needs_a_reason_and_an_operator(admin: Client, sign_in: SignIn) -> None:
    put(cluster("pay"))
    form = {"act": "quarantine", "chosen": "cluster r1 pay", "sure": "1"}

    unsaid = sent(admin, 422, **form)
    sent(sign_in(Role.EDITOR, "default"), 403, **form, message="bad")
    sent(admin, 302, **form, message="bad")

    assert "Say why" in unsaid
    assert Quarantine.objects.get(released_at=None).reason == "bad"
    sent(admin, 302, act="release", chosen="cluster r1 pay", sure="1", message="mended")
    assert not Quarantine.objects.filter(released_at=None).exists()


def test_limited_role__labels_its_own_and_is_told_of_others_by_name(admin: Client) -> None:
    put(cluster("mine"), owner="pay")
    put(cluster("theirs"), owner="shop")
    pia = USERS.objects.create_user("pia")
    RoleGrant.objects.create(user=pia, environment="default", role="viewer")
    RoleGrant.objects.create(user=pia, environment="default", role="editor", within=Limit(owner="pay").text)
    client = Client()
    client.force_login(pia)

    refused = sent(client, 403, act="labels", chosen="cluster r1 mine\ncluster r1 theirs", labels="a=1", sure="1")
    sent(client, 302, act="labels", chosen="cluster r1 mine", labels="a=1", sure="1")

    assert "pia may not write the cluster 'theirs'." in refused
    assert (labels("mine"), labels("theirs")) == ("\na=1\n", "")


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"act": "explode", "pick": "cluster r1 pay"}, 422),
        ({"act": "delete"}, 422),
        ({"act": "delete", "pick": "cluster pay"}, 404),
        ({"act": "delete", "pick": "planet r1 pay"}, 404),
        ({"act": "delete", "pick": ["cluster r1 pay"] * 2}, 422),
        ({"act": "delete", "chosen": "x" * 2_000_001}, 422),
        ({"act": "delete", "all": "1", "f_label": "a in (b)"}, 422),
    ],
)
def test_form__that_nobody_would_send__is_refused_with_a_page(admin: Client, form: dict[str, Any], status: int) -> None:
    put(cluster("pay"))

    assert "Nothing was changed" in sent(admin, status, **form) or status == 422
    assert not Resource.objects.filter(deleted=True).exists()


def test_names__hostile__act_nowhere(admin: Client) -> None:
    name = HOSTILE.replace("\x1b[31m", "")
    change_apply(environment_key="default", edits=[Put(parsed(cluster(name)))], actor=DANA)

    picked = f"cluster r1 {quote(name)}"
    for answer in (admin.get(LIST), admin.post(BULK, {"act": "delete", "pick": picked})):
        assert answer.status_code == 200
        assert_harmless(answer.content.decode())
    sent(admin, 302, act="delete", pick=picked, sure="1")
    assert Resource.objects.get(name=name).deleted


def test_get__of_the_address__leads_to_the_list(admin: Client) -> None:
    assert admin.get(BULK)["Location"] == LIST
