"""Change sets: proposing, reviewing, scheduling and publishing what is to be written."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.access.choices import EditSubject
from controlplane.access.steps import access_text
from controlplane.accounts.principal import Role
from controlplane.api.answers import empty_answer, json_answer, moment, moment_or_none
from controlplane.api.bodies import document_of, values_of
from controlplane.api.differences import difference_json, impact_json
from controlplane.api.examples import CLUSTER
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.paths import ENVIRONMENT_PATH, path_to
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import (
    CHANGE_SET_FILTERS,
    CHANGE_SET_PARAMETERS,
    CURSOR,
    STRICT,
    body_of_shape,
    described,
    page_of,
)
from controlplane.api.shapes.changesets import (
    ChangeSetDetailOut,
    ChangeSetEditIn,
    ChangeSetIn,
    ChangeSetOut,
)
from controlplane.api.views.access_drafts import WISHES, wishes_placed, wishes_problems, wishes_read
from controlplane.api.views.apply import deletions_of
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.reading import NOTHING_KEPT, Kept, manifests_at, parsed_all, puts_of
from controlplane.catalog.values import Edit
from controlplane.changesets.machine import Act
from controlplane.changesets.rights import require
from controlplane.changesets.selectors import (
    change_set_contents,
    change_set_environment,
    change_set_get,
    change_set_kept,
    change_sets_of,
)
from controlplane.changesets.services import (
    SetChanges,
    Stays,
    Times,
    change_set_create,
    change_set_delete,
    change_set_edit,
)
from controlplane.changesets.values import ACCESS_WORDS, Merge, Moved, Remark, SetState, SetView, SetWish, Take
from controlplane.common.errors import InputInvalid, NotFound
from controlplane.explain.prospects import Prospect, prospect_of
from xdscore.codes import shown
from xdscore.findings import Finding
from xdscore.names import canonical
from xdscore.schema.leniency import is_spelling
from xdscore.schema.text import Document

_ACTED: Final = (400, 401, 403, 404, 409, 413, 415, 422, 503)
_MAX_DIFF: Final = 1_000
CHANGE_SET_PATH: Final = "change-sets/<uuid:change_set_id>"


class ChangeSetListView(ApiView):
    """List the change sets of an environment, and make one."""

    needs = {"GET": Role.VIEWER, "POST": Needs.CHECK}

    def check(self, request: Request, environment_key: str) -> None:
        """Raise Forbidden when the caller may propose nothing in the environment."""
        require(principal_of(request), Act.EDIT, environment_key)

    @extend_schema(
        operation_id="change_set_list",
        summary="List the change sets of an environment, newest first",
        parameters=[*CURSOR, *CHANGE_SET_FILTERS],
        responses=described(200, page_of(ChangeSetOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of change sets."""
        query = Query(request, CURSOR_PARAMETERS, repeatable=("state",))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        after = query.text("after", at_most=20)
        states = tuple(SetState(each) for each in query.words("state", [each.value for each in SetState]))
        query.done()
        found = change_sets_of(environment_key=environment_key, states=states, after=after, limit=limit)
        return json_answer(cursor_page(request, [view_json(each) for each in found.rows], limit, found.after))

    @extend_schema(
        operation_id="change_set_create",
        summary="Propose what to write and to delete as one change; nothing of it is published",
        parameters=[STRICT],
        request=body_of_shape(ChangeSetIn),
        responses=described(201, ChangeSetDetailOut, *_ACTED),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Make a draft."""
        query = Query(request, ("strict",))
        strict = query.flag("strict")
        query.done()
        document = document_of(request)
        values = values_of(document, ChangeSetIn)
        edits, said = _edits(document, values, environment_key, NOTHING_KEPT, strict=strict)
        with wishes_placed(document):
            made = change_set_create(
                environment_key=environment_key,
                title=values["title"],
                message=values["message"],
                edits=edits,
                wishes=wishes_read(values) or (),
                times=Times(values["not_before"], values["expires"]),
                actor=principal_of(request),
                request_id=request_id(),
            )
        return json_answer(
            _detail_json(made, said=said), status=201, headers={"Location": path_to("change-sets", made)}
        )


class ChangeSetView(ApiView):
    """Read, edit or delete one change set."""

    needs = {"GET": Needs.ANYBODY, "PATCH": Needs.CHECK, "DELETE": Needs.CHECK}

    def check(self, request: Request, change_set_id: UUID) -> None:
        """Raise NotFound when the caller may not see the change set, Forbidden when they may not edit it."""
        act = Act.DELETE if request.method == "DELETE" else Act.EDIT
        require(principal_of(request), act, change_set_visible(request, change_set_id))

    @extend_schema(
        operation_id="change_set_get",
        summary="Read a change set: what it does, what it would change now, and what was said of it",
        parameters=CHANGE_SET_PARAMETERS,
        responses=described(200, ChangeSetDetailOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """The change set as it stands now."""
        query = Query(request, ("manifests", "text"))
        manifests, text = query.flag("manifests"), query.flag("text")
        query.done()
        change_set_visible(request, change_set_id)
        return json_answer(_detail_json(str(change_set_id), manifests=manifests, text=text))

    @extend_schema(
        operation_id="change_set_edit",
        summary="Change a change set, which becomes a draft again: every approval is void",
        parameters=[STRICT],
        request=body_of_shape(ChangeSetEditIn),
        responses=described(200, ChangeSetDetailOut, *_ACTED),
    )
    def patch(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Change what is named; `resources` and `delete` together replace all that it does with resources, and the
        members about rules and groups all that it does with these.
        """
        query = Query(request, ("strict",))
        strict = query.flag("strict")
        query.done()
        document = document_of(request)
        values = values_of(document, ChangeSetEditIn)
        public_id = str(change_set_id)
        edits: tuple[Edit, ...] | None = None
        said: tuple[Finding, ...] = ()
        if "resources" in values or "delete" in values:
            edits, said = _edits_of_set(document, values, public_id, strict=strict)
        changes = SetChanges(
            title=values.get("title"),
            message=values.get("message"),
            edits=edits,
            wishes=wishes_read(values),
            merges=_merges(values.get("merge", [])),
            not_before=values.get("not_before", Stays.AS_IT_IS),
            expires=values.get("expires", Stays.AS_IT_IS),
        )
        with wishes_placed(document):
            change_set_edit(
                public_id=public_id,
                changes=changes,
                version=values.get("version"),
                actor=principal_of(request),
                request_id=request_id(),
            )
        return json_answer(_detail_json(public_id, said=said))

    @extend_schema(
        operation_id="change_set_delete",
        summary="Delete a change set that was not published",
        responses=described(204, None, 401, 403, 404, 409, 422, 503),
    )
    def delete(self, request: Request, change_set_id: UUID) -> HttpResponse:
        """Delete it, with what was said of it."""
        Query(request, ()).done()
        change_set_delete(public_id=str(change_set_id), actor=principal_of(request), request_id=request_id())
        return empty_answer(204)


def change_set_visible(request: Request, change_set_id: UUID) -> str:
    """The key of the change set's environment. Raises NotFound, with one text, where there is no such change set and
    where the caller may not see it.
    """
    absent = NotFound(f"There is no change set '{change_set_id}'.")
    try:
        environment = change_set_environment(public_id=str(change_set_id))
    except NotFound:
        raise absent from None
    if not principal_of(request).may(Role.VIEWER, environment):
        raise absent
    return environment


Said = tuple[tuple[Edit, ...], tuple[Finding, ...]]
"""Edits, and what is to be said of how they were written."""


def _edits_of_set(document: Document, values: Mapping[str, Any], public_id: str, *, strict: bool) -> Said:
    """The edits of a body for a change set that exists: secrets that the body keeps are those of the set or, where it
    has none, the stored ones.
    """
    detail = change_set_get(public_id=public_id)
    kept = change_set_kept(public_id=public_id, keys=[(each.type, each.name) for each in detail.entries])
    return _edits(document, values, detail.view.environment, kept, strict=strict)


def _edits(document: Document, values: Mapping[str, Any], environment_key: str, kept: Kept, *, strict: bool) -> Said:
    """The edits that `resources` and `delete` of a body stand for. Raises InputInvalid with every problem of the body,
    those of its rules and groups among them.
    """
    try:
        manifests, notes = manifests_at(document, "/resources") if values.get("resources", []) != [] else ((), ())
        read = parsed_all(manifests, environment_key=environment_key, kept=kept, strict=strict)
        edits: tuple[Edit, ...] = (*puts_of(read), *deletions_of(document, values.get("delete", [])))
    except InputInvalid as error:
        error.findings += wishes_problems(document, values, environment_key)
        raise
    return edits, (*notes, *(each for each in read.findings if is_spelling(each)))


def _merges(said: list[dict[str, str]]) -> tuple[Merge, ...]:
    return tuple(Merge(*key_read(each["type"], each["name"]), Take(each["take"])) for each in said)


def key_read(kind: str, name: str) -> tuple[str, str]:
    """The word of a type and the canonical name; of a rule or group, its word and name. Raises InputInvalid for a type
    that does not exist.
    """
    if kind in ACCESS_WORDS:
        return kind, name
    found = kind_named(kind)
    if found is None:
        raise InputInvalid(f"There is no type '{shown(kind)}'. Types are {type_words()}, or their type URLs.")
    return found.word, canonical(name)


def _detail_json(
    public_id: str, *, manifests: bool = False, text: bool = False, said: Sequence[Finding] = ()
) -> dict[str, object]:
    """A change set with all that is known of it. `said`: findings about the body that just wrote it."""
    detail = change_set_get(public_id=public_id)
    contents = change_set_contents(public_id=public_id)
    bases = {(each.type, each.name): each.base for each in detail.entries}
    diff = [{**difference_json(each, text=text), "base": bases[each.key] or None} for each in contents.diff[:_MAX_DIFF]]
    members: dict[str, object] = {
        **view_json(detail.view),
        "moved": [_moved_json(each) for each in detail.moved],
        "diff": diff,
        "access": [_wish_json(each, text=text) for each in detail.wishes],
        **_prospect_json(prospect_of(detail), said),
        "reviews": [_remark_json(each) for each in detail.remarks],
        "allowed": [act.value for act in Act if act in detail.acts],
    }
    if manifests:
        members["resources"] = list(contents.manifests.values())
        members["delete"] = [{"type": each.type, "name": each.name} for each in detail.entries if each.deletes]
        members |= _wished_json(detail.wishes)
    return members


def _prospect_json(prospect: Prospect, said: Sequence[Finding]) -> dict[str, object]:
    """What publishing the change set would do now."""
    return {
        "findings": [finding_json(each) for each in (*said, *prospect.findings)],
        "impact": impact_json(prospect.impact) if prospect.impact is not None else None,
        "loss": prospect.loss.as_json() if prospect.loss is not None else None,
    }


def view_json(view: SetView) -> dict[str, object]:
    """How a change set stands, as JSON."""
    return {
        "id": view.id,
        "environment": view.environment,
        "title": view.title,
        "message": view.message,
        "state": view.state.value,
        "version": view.version,
        "authors": list(view.authors),
        "resource_count": view.resources,
        "access_count": view.access,
        "moved_count": view.moved,
        "base_generation": view.base_generation,
        "approvals": view.approvals,
        "approvals_needed": view.needed,
        "review_required": view.required,
        "not_before": moment_or_none(view.not_before),
        "expires": moment_or_none(view.expires),
        "waits_for": view.waits_for or None,
        "scheduled_by": view.scheduled_by or None,
        "published_by": view.published_by or None,
        "changes": list(view.changes),
        "created_at": moment(view.created_at),
        "edited_at": moment(view.edited_at),
        "ended_at": moment_or_none(view.ended_at),
    }


def _moved_json(moved: Moved) -> dict[str, object]:
    return {
        "type": moved.type,
        "name": moved.name,
        "from": moved.base or None,
        "to": moved.now or None,
        "author": moved.author,
        "change": moved.change,
    }


def _wish_json(each: SetWish, *, text: bool) -> dict[str, object]:
    word, name = each.key
    return {
        **({"text": access_text(f"{word}/{name}", each.before, each.after)} if text else {}),
        "type": word,
        "name": name,
        "id": each.wish.id,
        "action": each.action.value,
        "before": each.before,
        "after": each.after,
    }


def _wished_json(wishes: Iterable[SetWish]) -> dict[str, list[object]]:
    """What a change set does with rules and groups, as a PATCH takes it."""
    found: dict[str, list[object]] = {member: [] for member in WISHES}
    for each in wishes:
        is_rule, after = each.wish.subject is EditSubject.RULE, each.after
        if after is None:
            found["delete_rules" if is_rule else "delete_groups"].append(each.wish.id if is_rule else each.wish.name)
        else:
            known = {"id": each.wish.id} if each.wish.id is not None else {}
            found["rules" if is_rule else "groups"].append({**known, **after})
    return found


def _remark_json(remark: Remark) -> dict[str, object]:
    return {
        "author": remark.author,
        "verdict": remark.verdict.value,
        "text": remark.text,
        "version": remark.version,
        "counts": remark.counts,
        "type": remark.type,
        "name": remark.name,
        "line": remark.line,
        "at": moment(remark.at),
    }


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/change-sets", ChangeSetListView.as_view()),
    path(CHANGE_SET_PATH, ChangeSetView.as_view()),
]
EXAMPLES = {
    "change_set_create": {"title": "more weight for pay", "resources": [CLUSTER], "expires": "2027-01-31T12:00:00Z"},
    "change_set_edit": {"message": "for the sale on Friday", "version": 1},
}
