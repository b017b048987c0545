"""Views that people keep: whose they are, who is offered them, and what nobody learns by them. In both databases."""

from uuid import UUID, uuid4

import pytest

from controlplane.accounts.principal import Principal, Role, Scope
from controlplane.common.errors import Conflict, ControlPlaneError, Forbidden, InputInvalid, NotFound
from controlplane.common.principal_ids import PrincipalId, PrincipalKind
from controlplane.journal.models import AuditEvent
from controlplane.listing.frames import SINCE, Filter, Frame, Order
from controlplane.listing.selectors import View, default_query, views_of
from controlplane.listing.services import (
    MAX_OWN,
    view_change,
    view_default,
    view_delete,
    view_save,
)

pytestmark = pytest.mark.usefixtures("database")
FRAME = Frame("fruit", "fruits", "fruits", (Filter("name", "Name"), SINCE), (Order("name", "Name"),))
ANYWHERE = Frame("deeds", "deeds", "deeds", (Filter("name", "Name"),), of_environment=False)


def person(number: int, *roles: Role, environment: str = "default") -> Principal:
    scopes = tuple(Scope(role, environment) for role in roles)
    return Principal(f"person-{number}", scopes, PrincipalId(PrincipalKind.USER, number))


EDITOR, VIEWER, OPERATOR = person(1, Role.EDITOR), person(2, Role.VIEWER), person(3, Role.OPERATOR)
ADMIN, STRANGER = person(4, Role.ADMIN), person(5, Role.ADMIN, environment="prod")


def save(
    actor: Principal, name: str = "mine", query: str = "name=pear", *, shared: bool = False, frame: Frame = FRAME
) -> UUID:
    key = "default" if frame.of_environment else ""
    return view_save(
        frame=frame, environment_key=key, query=query, name=name, shared=shared, actor=actor, request_id="r-1"
    )


def views(who: Principal, frame: Frame = FRAME) -> list[View]:
    key = "default" if frame.of_environment else ""
    return list(views_of(principal=who, listed=frame.name, environment_key=key))


def refused(kind: type[ControlPlaneError], view: UUID, actor: Principal) -> None:
    """Nobody but whose view it is may do any of this."""
    where = "default"
    with pytest.raises(kind):
        view_change(public_id=view, name="stolen", environment_key=where, actor=actor, request_id="")
    with pytest.raises(kind):
        view_change(public_id=view, shared=True, environment_key=where, actor=actor, request_id="")
    with pytest.raises(kind):
        view_delete(public_id=view, environment_key=where, actor=actor, request_id="")


def test_view__kept__is_seen_by_whose_it_is_alone() -> None:
    save(EDITOR, query="sort=-name&name=pear")

    [kept] = views(EDITOR)
    assert (kept.name, kept.query, kept.own, kept.shared, kept.default) == (
        "mine",
        "name=pear&sort=-name",
        True,
        False,
        False,
    )
    assert [views(who) for who in (VIEWER, OPERATOR, ADMIN, STRANGER)] == [[], [], [], []]
    # Of a view that is nobody else's, the log has neither name nor question.
    event = AuditEvent.objects.latest("pk")
    assert (event.verb, event.environment, event.detail) == (
        "view.saved",
        "default",
        {"list": "fruit", "shared": False},
    )


def test_view__kept_again_under_its_name__is_the_same_one() -> None:
    first, second = save(EDITOR), save(EDITOR, query="name=plum")

    assert first == second
    assert [each.query for each in views(EDITOR)] == ["name=plum"]


def test_view__shared__is_offered_to_who_reads_the_environment_and_stands_in_the_log() -> None:
    save(OPERATOR, "ripe", shared=True)

    assert [(each.name, each.author, each.own) for each in views(VIEWER)] == [("ripe", "person-3", False)]
    assert views(STRANGER) == []
    assert AuditEvent.objects.latest("pk").detail == {
        "list": "fruit",
        "name": "ripe",
        "query": "name=pear",
        "shared": True,
    }


@pytest.mark.parametrize(("who", "may"), [(EDITOR, True), (OPERATOR, True), (ADMIN, True), (VIEWER, False)])
def test_share__takes_a_role_that_may_change_something(who: Principal, *, may: bool) -> None:
    if may:
        save(who, shared=True)
        return
    with pytest.raises(Forbidden, match="editor, access-editor, operator or admin"):
        save(who, shared=True)
    assert views(who) == []


def test_view__of_somebody_else__is_theirs() -> None:
    own, shared = save(EDITOR), save(EDITOR, "ripe", shared=True)

    refused(NotFound, own, OPERATOR)
    refused(NotFound, shared, STRANGER)
    refused(Forbidden, shared, OPERATOR)
    assert {each.name for each in views(EDITOR)} == {"mine", "ripe"}


def test_view__shared__an_administrator_deletes_it() -> None:
    view = save(EDITOR, shared=True)

    view_delete(public_id=view, environment_key="default", actor=ADMIN, request_id="")

    assert views(EDITOR) == []


def test_view__with_the_name_of_another__is_not_renamed() -> None:
    save(EDITOR, "first")
    second = save(EDITOR, "second")

    with pytest.raises(Conflict):
        view_change(public_id=second, name=" first ", environment_key="default", actor=EDITOR, request_id="")
    view_change(public_id=second, name="third", environment_key="default", actor=EDITOR, request_id="")

    assert [each.name for each in views(EDITOR)] == ["first", "third"]


def test_default__one_of_a_list__until_it_is_not_shared_any_more() -> None:
    shared, own = save(EDITOR, "ripe", "name=ripe", shared=True), save(VIEWER)
    for view in (own, shared):
        view_default(public_id=view, frame=FRAME, environment_key="default", actor=VIEWER)

    opens = {"listed": "fruit", "environment_key": "default"}
    assert default_query(principal=VIEWER, **opens) == "name=ripe"
    assert default_query(principal=EDITOR, **opens) == ""
    assert [each.name for each in views(VIEWER) if each.default] == ["ripe"]
    view_change(public_id=shared, shared=False, environment_key="default", actor=EDITOR, request_id="")
    assert default_query(principal=VIEWER, **opens) == ""


def test_default__none__opens_everything() -> None:
    view_default(public_id=save(EDITOR), frame=FRAME, environment_key="default", actor=EDITOR)

    view_default(public_id=None, frame=FRAME, environment_key="default", actor=EDITOR)

    assert default_query(principal=EDITOR, listed="fruit", environment_key="default") == ""


def test_default__a_view_that_is_not_of_this_list__is_not_there() -> None:
    for view in (uuid4(), save(EDITOR, frame=ANYWHERE)):
        with pytest.raises(NotFound):
            view_default(public_id=view, frame=FRAME, environment_key="default", actor=EDITOR)


def test_view__of_a_list_of_no_environment__is_nobody_elses() -> None:
    save(ADMIN, frame=ANYWHERE)

    assert [each.name for each in views(ADMIN, ANYWHERE)] == ["mine"]
    assert views(EDITOR, ANYWHERE) == []
    with pytest.raises(InputInvalid, match="cannot be shared"):
        save(ADMIN, "all", shared=True, frame=ANYWHERE)


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\x1bb", "a\u202eb"])
def test_view__name_that_cannot_be__is_turned_down(name: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        save(EDITOR, name)

    assert [each.pointer for each in caught.value.findings] == ["/name"]


@pytest.mark.parametrize("query", ["next=//evil.example", "since=never", "sort=taste", "page=2"])
def test_view__query_that_is_not_of_the_list__is_not_kept(query: str) -> None:
    with pytest.raises(InputInvalid):
        save(EDITOR, query=query)


def test_views__too_many__says_so_and_still_writes_over_one() -> None:
    for number in range(MAX_OWN):
        save(EDITOR, f"view {number}")

    with pytest.raises(Conflict, match="You have 50 views here"):
        save(EDITOR, "one more")
    save(EDITOR, "view 7", "name=plum")
    save(VIEWER)
