"""Comments and ticket links over REST: who may read, write, edit and delete, and whom a mention tells."""

import uuid

import pytest
from django.contrib.auth import get_user_model

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import Principal, Role, Scope
from controlplane.accounts.selectors import user_principal
from controlplane.accounts.services import api_token_create
from controlplane.catalog.models import Environment
from controlplane.database.aliases import READER
from controlplane.discussion.models import Comment
from controlplane.discussion.values import MAX_COMMENTS, MAX_TEXT_CHARS
from controlplane.journal.models import AuditEvent
from controlplane.notify.models import Delivery, Notification
from controlplane.notify.services import notify
from tests.api.conftest import Answer, Caller, assert_problem, caller
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

PAY = {"environment": "default", "resource": "cluster/pay"}
LIST = "comments?environment=default&resource=cluster/pay"


@pytest.fixture
def stranger() -> Caller:
    """An administrator of another environment."""
    return caller(Scope(Role.ADMIN, "prod"))


@pytest.fixture
def change(api: Caller) -> str:
    """A change that wrote `pay`."""
    return str(api.put("environments/default/resources/cluster/pay?message=m", cluster("pay")).json["id"])


def person(login: str, role: Role = Role.VIEWER, environment: str = "default") -> Caller:
    """Somebody with an account, who acts by a token of theirs."""
    user = get_user_model().objects.create_user(login)
    RoleGrant.objects.create(user=user, role=role.value, environment=environment)
    principal = user_principal(user)
    assert isinstance(principal, Principal)
    return Caller(api_token_create(name=login, scopes=principal.scopes, actor=principal)[1])


def added(who: Caller, text: str = "Why 30s?", **about: str) -> Answer:
    return who.post("comments", {**(about or PAY), "text": text})


def test_comment__by_a_viewer_with_an_account__is_listed_newest_first(api: Caller, change: str) -> None:
    mia = person("mia")

    first = added(mia, "Why 30s?\n\nSee PAY-1.")
    second = added(mia, "I see.")

    assert (first.status, first.headers["Location"]) == (201, f"/api/v1/comments/{first.json['id']}")
    assert [each["text"] for each in api.get(LIST).json["results"]] == ["I see.", "Why 30s?\n\nSee PAY-1."]
    shown = api.get(f"comments/{first.json['id']}").json
    assert shown == first.json
    assert (shown["author"], shown["subject"], shown["edited_at"]) == ("token:mia", "cluster/pay", None)
    page = api.get(f"{LIST}&limit=1").json
    assert [each["id"] for each in page["results"]] == [second.json["id"]]
    assert [each["id"] for each in api.get(page["next"].partition("/api/v1/")[2]).json["results"]] == [first.json["id"]]


def test_comment__on_each_subject__is_there_alone(api: Caller, change: str) -> None:
    added(api, "on the change", change=change)
    added(api, "on the resource")

    assert [each["text"] for each in api.get(f"comments?change={change}").json["results"]] == ["on the change"]
    assert [each["text"] for each in api.get(LIST).json["results"]] == ["on the resource"]
    api.delete("environments/default/resources/cluster/pay")
    assert [each["text"] for each in api.get(LIST).json["results"]] == ["on the resource"]


def test_comment__by_a_service_token__needs_a_role_that_writes(change: str) -> None:
    assert_problem(added(caller(Scope(Role.VIEWER, "default"))), 403)
    assert_problem(added(caller(Scope(Role.REPORTER, "default"))), 403)
    assert added(caller(Scope(Role.EDITOR, "default"))).status == 201
    assert added(caller(Scope(Role.OPERATOR, "default"))).status == 201


def test_comment__edited_by_its_author_alone__says_so(api: Caller, change: str) -> None:
    mia, ben = person("mia"), person("ben", Role.EDITOR)
    path = f"comments/{added(mia).json['id']}"

    assert_problem(ben.patch(path, {"text": "no"}), 403)
    assert_problem(api.patch(path, {"text": "no"}), 403)
    edited = mia.patch(path, {"text": "Why 20s?"}).json

    assert (edited["text"], edited["edited_at"] is not None) == ("Why 20s?", True)


def test_comment__deleted_by_its_author_or_an_administrator__leaves_a_trace_without_its_text(
    api: Caller, change: str
) -> None:
    mia, ben = person("mia"), person("ben", Role.OPERATOR)
    first, second = added(mia, "hunter2").json["id"], added(mia, "hunter3").json["id"]

    assert_problem(ben.delete(f"comments/{first}"), 403)
    assert mia.delete(f"comments/{first}").status == 204
    assert api.delete(f"comments/{second}").status == 204

    assert_problem(api.get(f"comments/{first}"), 404)
    assert not Comment.objects.exists()
    deleted = AuditEvent.objects.filter(verb="comment.deleted")
    assert [(each.subject, each.detail["author"]) for each in deleted] == [("cluster/pay", "token:mia")] * 2
    assert not [each for each in AuditEvent.objects.all() if "hunter" in str(each.detail)]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "t"},
        {**PAY},
        {**PAY, "text": ""},
        {**PAY, "text": " \n "},
        {**PAY, "text": "x" * (MAX_TEXT_CHARS + 1)},
        {**PAY, "text": "a\x1b[2Jb"},
        {**PAY, "text": "a\u202eb"},
        {**PAY, "text": 1},
        {"environment": "default", "text": "t"},
        {"resource": "cluster/pay", "text": "t"},
        {"environment": "default", "resource": "pay", "text": "t"},
        {**PAY, "change": str(uuid.UUID(int=0)), "text": "t"},
        {"change": "nonsense", "text": "t"},
    ],
)
def test_comment__without_sense__422_and_nothing_is_kept(api: Caller, change: str, body: object) -> None:
    assert_problem(api.post("comments", body), 422)

    assert not Comment.objects.exists()


@pytest.mark.parametrize(
    "question", ["", "?change=x", "?environment=default", f"?change={uuid.UUID(int=0)}&incident={uuid.UUID(int=0)}"]
)
def test_comments__asked_of_nothing_or_too_much__422(api: Caller, question: str) -> None:
    assert_problem(api.get(f"comments{question}"), 422)


def test_comment__of_what_others_see__is_not_there(stranger: Caller, api: Caller, change: str) -> None:
    public_id = added(api).json["id"]

    for answer in (
        stranger.get(LIST),
        stranger.get(f"comments?change={change}"),
        stranger.get(f"comments/{public_id}"),
        stranger.patch(f"comments/{public_id}", {"text": "t"}),
        stranger.delete(f"comments/{public_id}"),
        added(stranger),
        added(stranger, change=change),
        api.get("comments?environment=default&resource=cluster/never"),
        api.get(f"comments?change={uuid.UUID(int=0)}"),
        api.get(f"comments?incident={uuid.UUID(int=0)}"),
    ):
        assert_problem(answer, 404)
    assert stranger.get(f"comments/{public_id}").json["detail"] == f"There is no comment '{public_id}'."


def test_comments__as_many_as_are_kept__then_409(api: Caller, change: str) -> None:
    row = Comment.objects.get(public_id=added(api).json["id"])
    Comment.objects.bulk_create(
        Comment(environment=row.environment, resource=row.resource, author="a", principal="user:1", text="t")
        for _ in range(MAX_COMMENTS - 1)
    )

    assert_problem(added(api), 409)


def test_mention__of_somebody_who_may_see_it__tells_them_alone(api: Caller, change: str) -> None:
    mia, ben = person("mia"), person("ben")
    person("far", environment="prod")

    added(mia, "@ben, @far, @never and @mia: is this right?")
    notify()

    (told,) = ben.get("notifications?for_me=true").json["results"]
    assert (told["kind"], told["title"]) == (
        "comment.mentioned",
        "token:mia mentioned you in a comment on cluster pay in 'default'",
    )
    assert "comment.mentioned" not in str(mia.get("notifications").json)
    assert "comment.mentioned" not in str(api.get("notifications").json)
    assert Notification.objects.filter(kind="comment.mentioned").count() == 1
    assert not Delivery.objects.exists()


def test_mention__added_by_an_edit__tells_only_who_is_new(change: str) -> None:
    mia = person("mia")
    person("ben")
    person("eve")
    path = f"comments/{added(mia, '@ben look').json['id']}"

    mia.patch(path, {"text": "@ben look, @eve too"})
    notify()

    titles = Notification.objects.filter(kind="comment.mentioned").values_list("recipient", flat=True)
    assert len(set(titles)) == len(titles) == 2


def test_mention__answer__is_the_same_whether_or_not_there_is_such_a_login(change: str) -> None:
    mia = person("mia")
    person("far", environment="prod")

    known, unknown = added(mia, "@far hello").json, added(mia, "@nev hello").json

    assert {*known} == {*unknown}
    assert known["text"].replace("far", "nev") == unknown["text"]


LINK = {"form": "PAY-{number}", "url": "https://jira.example/browse/PAY-{number}"}


def test_ticket_link__added_listed_and_deleted__by_administrators_of_its_reach(api: Caller, stranger: Caller) -> None:
    everywhere = api.post("ticket-links", LINK).json
    here = api.post("ticket-links", {**LINK, "environment": "default"}).json
    admin = caller(Scope(Role.ADMIN, "default"))

    assert [each["environment"] for each in api.get("ticket-links").json["results"]] == [None, "default"]
    assert [each["id"] for each in stranger.get("ticket-links").json["results"]] == [everywhere["id"]]
    assert_problem(api.post("ticket-links", LINK), 409)
    assert_problem(admin.post("ticket-links", LINK), 403)
    assert_problem(admin.delete(f"ticket-links/{everywhere['id']}"), 403)
    assert_problem(stranger.delete(f"ticket-links/{here['id']}"), 404)
    assert_problem(api.post("ticket-links", {**LINK, "environment": "never"}), 404)
    assert admin.delete(f"ticket-links/{here['id']}").status == 204
    verbs = AuditEvent.objects.filter(verb__startswith="ticket_link").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["ticket_link.added", "ticket_link.added", "ticket_link.deleted"]


def test_ticket_link__that_is_none__422_with_both_findings(api: Caller) -> None:
    answer = api.post("ticket-links", {"form": "(a+)+", "url": "http://e.example/{number}"})

    assert_problem(answer, 422)
    assert answer.pointers == ["/form", "/url"]


def test_ticket_links__as_many_as_are_kept__then_409(api: Caller) -> None:
    for letter in "ABCDEFGHIJKLMNOPQRST":
        assert api.post("ticket-links", {**LINK, "form": f"{letter}-{{number}}"}).status == 201

    assert_problem(api.post("ticket-links", {**LINK, "form": "Z-{number}"}), 409)
    assert Environment.objects.exists()
