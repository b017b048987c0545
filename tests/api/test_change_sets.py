"""Change sets over REST: proposed by one, approved by another, published once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Blob, Change, Resource
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent, DomainEvent
from tests.api.conftest import Answer, Caller, assert_problem, caller
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "environments/default"
SETS = f"{HERE}/change-sets"
AsRole = Callable[[str, str | None], Caller]


@pytest.fixture
def api(environments: None) -> Caller:
    return caller(*ADMIN_SCOPES)


@pytest.fixture
def author(api: Caller) -> Caller:
    return caller(Scope(Role.EDITOR, "default"))


@pytest.fixture
def other(api: Caller) -> Caller:
    return caller(Scope(Role.EDITOR, "default"))


def propose(by: Caller, *names: str, timeout: str = "1s", **more: Any) -> str:
    answer = by.post(
        SETS, {"title": "pay", "resources": [cluster(name, connect_timeout=timeout) for name in names], **more}
    )
    assert answer.status == 201, answer.json
    return str(answer.json["id"])


def act(by: Caller, which: str, what: str, query: str = "", **body: Any) -> Answer:
    return by.post(f"change-sets/{which}/{what}{query}", {"reason": "because", **body})


def ask_for_review(api: Caller, **more: Any) -> None:
    assert api.patch(HERE, {"review": {"required": True, **more}}).status == 200


def approved(author: Caller, other: Caller, *names: str, **more: Any) -> str:
    made = propose(author, *(names or ("pay",)), **more)
    assert act(author, made, "submit").json["state"] == "review"
    assert act(other, made, "approve").json["state"] == "approved"
    return made


def test_draft__is_told_with_what_it_does_and_writes_nothing(api: Caller, author: Caller) -> None:
    api.put(f"{HERE}/resources/cluster/pay", cluster("pay"))
    made = author.post(
        SETS,
        {
            "title": "more time",
            "message": "for the sale",
            "resources": [cluster("pay", connect_timeout="2s"), cluster("shop")],
            "delete": [{"type": "cluster", "name": "old"}],
        },
    )

    assert made.status == 201
    assert made.headers["Location"].endswith(made.json["id"])
    found = author.get(f"change-sets/{made.json['id']}?manifests=true&text=true").json
    assert (found["state"], found["version"], found["resource_count"]) == ("draft", 1, 3)
    assert [(each["name"], each["action"], each["base"]) for each in found["diff"]] == [
        ("pay", "updated", 1),
        ("shop", "created", None),
    ]
    assert "connect_timeout: 2s" in found["diff"][0]["text"] or "2s" in found["diff"][0]["text"]
    assert [each["name"] for each in found["resources"]] == ["pay", "shop"]
    assert found["delete"] == [{"type": "cluster", "name": "old"}]
    assert found["impact"]["connected"] == 0
    assert Resource.objects.count() == 1
    assert [each["id"] for each in author.get(SETS).json["results"]] == [found["id"]]


def test_review__proposed_approved_and_published__is_one_change_of_its_author(
    api: Caller, author: Caller, other: Caller
) -> None:
    ask_for_review(api)
    made = approved(author, other, "pay", "shop", message="for the sale")

    before = other.get(f"change-sets/{made}").json["findings"]
    answer = act(other, made, "publish")

    assert answer.status == 202
    assert "XDS3031" not in [each["code"] for each in before]
    assert (answer.json["moved_count"], other.get(f"change-sets/{made}").json["moved"]) == (0, [])
    assert answer.json["state"] == "published"
    [change] = answer.json["changes"]
    assert answer.headers["Location"].endswith(change)
    stored = Change.objects.get(public_id=change)
    assert (stored.message, stored.revisions.count()) == ("for the sale", 2)
    assert stored.author == answer.json["authors"][0] != answer.json["published_by"]
    again = act(other, made, "publish")
    assert (again.status, again.json["changed"], again.json["changes"]) == (200, False, [change])
    assert Change.objects.filter(revisions__isnull=False).distinct().count() == 1
    verbs = AuditEvent.objects.filter(verb__startswith="change_set.").order_by("pk").values_list("verb", flat=True)
    assert [verb.partition(".")[2] for verb in verbs] == ["created", "submitted", "approved", "published"]
    told = DomainEvent.objects.filter(kind__startswith="change_set.").order_by("pk").values_list("kind", flat=True)
    assert [kind.partition(".")[2] for kind in told] == ["submitted", "approved", "published"]


def test_review_required__writes_of_resources__409_with_the_way_to_a_change_set(api: Caller) -> None:
    api.put(f"{HERE}/resources/cluster/pay", cluster("pay"))
    change = api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="2s")).json["id"]
    ask_for_review(api)

    for refused in (
        api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="3s")),
        api.delete(f"{HERE}/resources/cluster/pay"),
        api.post(f"{HERE}/apply", {"resources": [cluster("shop")]}),
        api.post(f"{HERE}/resources/cluster/pay/revisions/1/restore", {}),
    ):
        assert_problem(refused, 409, "XDS3031")
        assert "change-sets" in refused.json["detail"]
    dry = api.post(f"{HERE}/apply?dry_run=true", {"resources": [cluster("shop")]})
    assert "XDS3031" in [each["code"] for each in dry.json["findings"]]
    assert api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="2s")).status == 200
    assert api.post(f"changes/{change}/undo", {"reason": "it broke"}).status == 202


def test_break_glass__past_the_review__needs_the_role_and_is_told_everybody(api: Caller, author: Caller) -> None:
    ask_for_review(api)
    both = caller(Scope(Role.EDITOR, "default"), Scope(Role.OPERATOR, "default"))

    assert_problem(author.put(f"{HERE}/resources/cluster/pay?break_glass=fire", cluster("pay")), 403)
    answer = both.put(f"{HERE}/resources/cluster/pay?break_glass=fire", cluster("pay"))

    assert answer.status == 202
    assert answer.json["message"].endswith("went past the review: fire")
    assert api.get("audit?verb=review.broken").json["results"][0]["detail"] == {"reason": "fire"}
    assert DomainEvent.objects.get(kind="review.broken").payload["reason"] == "fire"


@pytest.mark.parametrize("required", [True, False])
def test_approval__by_whoever_made_or_edited_it__403(
    api: Caller, author: Caller, other: Caller, required: bool
) -> None:
    ask_for_review(api, required=required)
    made = propose(author, "pay")
    other.patch(f"change-sets/{made}", {"title": "pay more"})
    act(author, made, "submit")

    for one in (author, other):
        assert_problem(act(one, made, "approve"), 403)
    assert act(caller(Scope(Role.OPERATOR, "default")), made, "approve").json["state"] == "approved"


def test_approval__of_the_author_where_the_environment_allows_it__counts(api: Caller, author: Caller) -> None:
    ask_for_review(api, self_approval=True)
    made = propose(author, "pay")
    act(author, made, "submit")

    assert act(author, made, "approve").json["state"] == "approved"


def test_edit__of_what_was_approved__voids_every_approval(api: Caller, author: Caller, other: Caller) -> None:
    ask_for_review(api)
    made = approved(author, other)

    edited = author.patch(f"change-sets/{made}", {"resources": [cluster("pay", connect_timeout="9s")]})

    assert (edited.json["state"], edited.json["approvals"]) == ("draft", 0)
    assert [each["counts"] for each in edited.json["reviews"]] == [False]
    assert_problem(act(author, made, "publish"), 409)
    act(author, made, "submit")
    assert_problem(act(author, made, "publish"), 409)
    assert Resource.objects.count() == 0


def test_approve__a_version_that_was_edited_since__409(api: Caller, author: Caller, other: Caller) -> None:
    made = propose(author, "pay")
    version = act(author, made, "submit").json["version"]
    author.patch(f"change-sets/{made}", {"resources": [cluster("pay", connect_timeout="9s")]})
    act(author, made, "submit")

    assert_problem(act(other, made, "approve", version=version), 409)
    assert act(other, made, "approve", version=version + 2).json["state"] == "approved"


def test_two_approvals__are_two_people(api: Caller, author: Caller, other: Caller) -> None:
    ask_for_review(api, approvals=2)
    made = propose(author, "pay")
    act(author, made, "submit")

    first, again = act(other, made, "approve"), act(other, made, "approve")
    assert (first.json["state"], first.json["approvals"], again.json["changed"]) == ("review", 1, False)
    assert act(api, made, "approve").json["state"] == "approved"


def test_more_approvals_asked_for_since__it_is_not_published(api: Caller, author: Caller, other: Caller) -> None:
    ask_for_review(api)
    made = approved(author, other)
    ask_for_review(api, approvals=2)

    refused = act(author, made, "publish")

    assert_problem(refused, 409)
    assert "one more person" in refused.json["detail"]
    act(api, made, "approve")
    assert act(author, made, "publish").status == 202


def test_stale__says_what_moved_and_is_merged_by_name(api: Caller, author: Caller, other: Caller) -> None:
    for name in ("pay", "shop"):
        api.put(f"{HERE}/resources/cluster/{name}", cluster(name))
    made = approved(author, other, "pay", "shop", timeout="2s")
    by = api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="3s")).json["id"]
    api.delete(f"{HERE}/resources/cluster/shop")

    refused = act(author, made, "publish")
    found = author.get(f"change-sets/{made}").json

    assert_problem(refused, 409)
    assert "stale" in refused.json["detail"]
    assert (found["state"], found["moved_count"]) == ("stale", 2)
    assert [(each["name"], each["from"], each["to"]) for each in found["moved"]] == [("pay", 1, 2), ("shop", 1, None)]
    assert found["moved"][0]["change"] == by
    for timeout in ("2s", "4s"):  # neither the same again nor something else hides what others wrote
        resources = [cluster(name, connect_timeout=timeout) for name in ("pay", "shop")]
        author.patch(f"change-sets/{made}", {"resources": resources})
        assert author.get(f"change-sets/{made}").json["state"] == "stale"
    merge = [
        {"type": "cluster", "name": "pay", "take": "ours"},
        {"type": "cluster", "name": "shop", "take": "theirs"},
    ]
    merged = author.patch(f"change-sets/{made}", {"merge": merge})
    assert (merged.json["state"], merged.json["resource_count"]) == ("draft", 1)
    act(author, made, "submit")
    act(other, made, "approve")
    assert act(author, made, "publish").status == 202
    assert [row.name for row in Resource.objects.filter(deleted=False)] == ["pay"]


def test_expired__is_not_published_until_it_has_a_later_time(api: Caller, author: Caller) -> None:
    past = f"{datetime.now(UTC) - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    made = propose(author, "pay", expires=past)

    assert author.get(f"change-sets/{made}").json["state"] == "expired"
    refused = act(author, made, "publish")
    assert_problem(refused, 409)
    assert "expires" in refused.json["detail"]
    author.patch(f"change-sets/{made}", {"expires": None})
    assert act(author, made, "publish").status == 202


def test_frozen__publishing_is_refused_as_any_write_and_may_be_broken(api: Caller, author: Caller) -> None:
    now = datetime.now(UTC)
    freeze = {
        "from": f"{now - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
        "until": f"{now + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
        "reason": "inventory",
    }
    api.patch(HERE, {"freezes": [freeze]})
    made = propose(author, "pay")

    assert_problem(act(author, made, "publish"), 409, "XDS3030")
    assert author.get(f"change-sets/{made}").json["state"] == "draft"
    assert act(api, made, "publish", "?break_glass=fire").status == 202


def test_secrets__of_a_draft__are_never_told_and_are_kept_by_an_edit(api: Caller, author: Caller) -> None:
    secret = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": "token",
        "generic_secret": {"secret": {"inline_string": "CANARY-42"}},
    }
    made = author.post(SETS, {"title": "a secret", "resources": [secret]})
    body = author.get(f"change-sets/{made.json['id']}?manifests=true&text=true")

    assert b"CANARY" not in body.content
    assert not any(b"CANARY" in bytes(blob.data) for blob in Blob.objects.all())
    kept = body.json["resources"]
    author.patch(f"change-sets/{made.json['id']}", {"resources": [*kept, cluster("pay")]})
    assert act(author, made.json["id"], "publish").status == 202
    assert {row.name for row in Resource.objects.all()} == {"pay", "token"}


def test_delete__of_a_draft__leaves_no_content_behind(api: Caller, author: Caller) -> None:
    api.put(f"{HERE}/resources/cluster/pay", cluster("pay"))
    before = set(Blob.objects.values_list("hash", flat=True))
    made = propose(author, "pay", "shop")
    author.patch(f"change-sets/{made}", {"resources": [cluster("pay"), cluster("other")]})

    assert author.delete(f"change-sets/{made}").status == 204

    assert set(Blob.objects.values_list("hash", flat=True)) == before
    assert_problem(author.get(f"change-sets/{made}"), 404)


def test_reject_cancel_and_comment(api: Caller, author: Caller, other: Caller) -> None:
    made = propose(author, "pay")
    act(author, made, "submit")

    assert_problem(other.post(f"change-sets/{made}/reject", {}), 422)
    said = {"reason": "in seconds?", "type": "cluster", "name": "pay", "line": 3}
    assert other.post(f"change-sets/{made}/comment", said).json["changed"] is True
    assert_problem(other.post(f"change-sets/{made}/comment", {**said, "name": "shop"}), 422)
    assert act(other, made, "reject").json["state"] == "rejected"
    assert_problem(act(author, made, "submit"), 409)
    assert act(author, made, "cancel").json["state"] == "draft"
    found = author.get(f"change-sets/{made}").json["reviews"]
    assert [(each["verdict"], each["line"]) for each in found] == [("comment", 3), ("rejected", None)]


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("viewer", set()),
        ("operator", {"approve", "comment", "reject"}),
        ("access-editor", {"comment"}),
        ("editor", {"submit", "approve", "comment", "reject", "publish", "schedule", "cancel", "PATCH", "DELETE"}),
    ],
)
def test_rights__of_each_role(api: Caller, as_role: AsRole, role: str, allowed: set[str]) -> None:
    made = propose(api, "pay")
    by = as_role(role, "default")
    acts = ("submit", "approve", "comment", "reject", "publish", "schedule", "cancel")

    answers = {what: act(by, made, what) for what in acts} if role != "editor" else {}
    answers |= {"PATCH": by.patch(f"change-sets/{made}", {"title": "x"})} if role != "editor" else {}
    answers |= {"DELETE": by.delete(f"change-sets/{made}")} if role != "editor" else {}

    assert {what for what, answer in answers.items() if answer.status != 403} == (
        allowed if role != "editor" else set()
    )
    assert by.get(f"change-sets/{made}").status == 200
    assert (by.post(SETS, {"title": "t"}).status == 201) == (role in {"editor", "access-editor"})


def test_of_another_tenant__is_not_there(api: Caller, as_role: AsRole) -> None:
    made = propose(api, "pay")
    stranger = as_role("editor", "edge")

    for answer in (
        stranger.get(f"change-sets/{made}"),
        stranger.patch(f"change-sets/{made}", {"title": "x"}),
        stranger.delete(f"change-sets/{made}"),
        act(stranger, made, "publish"),
        stranger.get(SETS),
        stranger.post(SETS, {"title": "x"}),
    ):
        assert_problem(answer, 404)


def test_bad_bodies__are_told_at_their_places_and_nothing_is_stored(api: Caller, author: Caller) -> None:
    for body, pointers in (
        ({}, {"/title"}),
        ({"title": " ", "colour": 1}, {"/title", "/colour"}),
        ({"title": "x", "resources": [{"name": 3}]}, None),
        ({"title": "x", "delete": [{"type": "moon", "name": "a"}]}, {"/delete/0/type"}),
        ({"title": "x", "not_before": "soon", "expires": 3}, {"/not_before", "/expires"}),
        ({"title": "x", "not_before": "2027-01-02T00:00:00Z", "expires": "2027-01-01T00:00:00Z"}, {"/expires"}),
    ):
        answer = author.post(SETS, body)
        assert_problem(answer, 422)
        assert pointers is None or set(answer.pointers) == pointers
    twice = author.post(SETS, {"title": "x", "resources": [cluster("pay"), cluster("pay")]})
    assert_problem(twice, 422)
    assert author.get(SETS).json["results"] == []
