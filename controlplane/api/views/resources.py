"""Resources: the list, one of them, its history (interfaces.md section 4)."""

from collections.abc import Mapping, Sequence
from typing import Final

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Allowed, Role
from controlplane.api.answers import empty_answer, json_answer, moment, prefers_yaml, rendered, yaml_answer
from controlplane.api.bodies import document_of, one_manifest, values_of
from controlplane.api.etags import etag, expectation_of, is_current
from controlplane.api.examples import CLUSTER
from controlplane.api.kinds import kind_in_path, kind_named, name_in_path, type_words
from controlplane.api.pages import OFFSET_PARAMETERS, counted_page, plain_page, window_of
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import (
    ACCEPT_CASES,
    ACCEPT_LOSS,
    BOTH,
    BREAK_GLASS,
    DOCUMENT,
    MANIFEST,
    MANIFEST_LIST,
    MESSAGE,
    OWNER,
    PAGE,
    PRECONDITIONS,
    RESOURCE_FILTERS,
    ROLLOUT_NOW,
    STRICT,
    WITH_STATUS,
    body_of_shape,
    described,
    page_of,
)
from controlplane.api.shapes.changes import ChangeMadeOut, UnchangedOut
from controlplane.api.shapes.labels import ResourcePatchIn
from controlplane.api.shapes.resources import ResourceRowOut, RevisionOut
from controlplane.api.views.base import ApiView, principal_of
from controlplane.api.views.changes import change_answer, held_back_json
from controlplane.api.views.guarding import rollout_asked
from controlplane.catalog.expiry import findings_at
from controlplane.catalog.filtering import ResourceFilter
from controlplane.catalog.manifests import exported_of, manifest_of
from controlplane.catalog.marking import Mark, words_of_marks
from controlplane.catalog.models import Resource, Revision
from controlplane.catalog.reading import parsed_all, puts_of
from controlplane.catalog.rights import OnSome
from controlplane.catalog.selectors import (
    resource_content,
    resource_get,
    resource_list,
    resource_named,
    resource_row,
    revision_list,
)
from controlplane.catalog.services import Terms, change_apply, resource_restore, secrets_read_record
from controlplane.catalog.standing import Key
from controlplane.catalog.values import Delete, Existing
from controlplane.clients.clock import database_now
from controlplane.common.errors import NotFound
from controlplane.status.selectors import Standing, standings_of, with_status
from controlplane.status.values import ResourceStatus, Status
from xdscore.resource_types import SECRET, ResourceType
from xdscore.schema import Expected, Tree

_CONSENTS: Final = ("accept_cases", "accept_loss", "break_glass")


class ResourceListView(ApiView):
    """List the resources of an environment."""

    needs = {"GET": OnSome(Role.VIEWER)}

    @extend_schema(
        operation_id="resource_list",
        summary="List resources by type and name",
        parameters=[*PAGE, *RESOURCE_FILTERS],
        responses=described(200, page_of(ResourceRowOut), 401, 404, 422, 503, yaml=MANIFEST_LIST),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of resources. With `manifests=true` and `Accept: application/yaml`, the page is a file that `apply`
        takes.
        """
        filters = ("type", "owner", "name", "status", "label", "author", "findings", "since", "until")
        query = Query(request, (*OFFSET_PARAMETERS, *filters, "manifests"))
        kind = query.parsed("type", kind_named, None, wanted=f"must be one of {type_words()}, or a type URL")
        owner = query.text("owner") if "owner" in request.query_params else None
        name_part = query.text("name")
        status = query.choice("status", [each.value for each in Status], "")
        labels = query.labels()
        since, until = query.span(database_now)
        wanted = ResourceFilter(query.text("author", at_most=150), since, until, query.found(), timezone.now())
        manifests = query.flag("manifests")
        window = window_of(query)
        query.done()
        allowed = _readable(request, environment_key)
        rows = resource_list(
            environment_key=environment_key,
            kind=kind,
            owner=owner,
            name_part=name_part,
            labels=labels,
            contents=manifests,
            allowed=allowed,
        )
        rows = wanted.applied(rows)
        if status:
            rows = with_status(rows, environment_key=environment_key, status=Status(status))
        found = list(rows[window.offset : window.offset + window.limit])
        contents = _manifests(request, environment_key, found) if manifests else {}
        if manifests and prefers_yaml(request):
            page = counted_page(request, list(contents.values()), window, rows.count())
            link = {"Link": f'<{page["next"]}>; rel="next"'} if page["next"] else {}
            return yaml_answer(page["results"], headers={"Vary": "Accept", **link})
        items = _rows_json(environment_key, found, contents, allowed)
        return json_answer(counted_page(request, items, window, rows.count()), headers={"Vary": "Accept"})


class ResourceView(ApiView):
    """Read, store and delete one resource, and say whose it is and what its labels are."""

    needs = {
        "GET": OnSome(Role.VIEWER),
        "PUT": OnSome(Role.EDITOR),
        "PATCH": OnSome(Role.EDITOR),
        "DELETE": OnSome(Role.EDITOR),
    }

    @extend_schema(
        operation_id="resource_get",
        summary="Read a resource as the manifest that would store it again",
        parameters=[WITH_STATUS],
        responses=described(200, DOCUMENT, 401, 404, 422, 503, media=BOTH, unmodified=True),
    )
    def get(self, request: Request, environment_key: str, type: str, name: str) -> HttpResponse:  # noqa: A002
        """The resource's manifest, without secrets; its revision is the ETag.

        With `status=true`, the resource with its status as in a list. That status changes without a new revision, so
        this answer is never a 304.
        """
        query = Query(request, ("status",))
        with_row = query.flag("status")
        query.done()
        kind = kind_in_path(type)
        if with_row:
            return self._document(request, environment_key, kind, name_in_path(kind, name))
        allowed = _readable(request, environment_key)
        content = resource_get(
            environment_key=environment_key, kind=kind, name=name_in_path(kind, name), allowed=allowed
        )
        _secrets_read(request, environment_key, [content.name] if kind.secret else [])
        tag = {"ETag": etag(content.revision)}
        if is_current(request, content.revision):
            return empty_answer(304, headers=tag)
        return rendered(request, manifest_of(content), headers=tag)

    def _document(self, request: Request, environment_key: str, kind: ResourceType, name: str) -> HttpResponse:
        allowed = _readable(request, environment_key)
        row = resource_named(environment_key=environment_key, kind=kind, name=name, allowed=allowed)
        for item in _rows_json(environment_key, [row], _manifests(request, environment_key, [row]), allowed):
            return rendered(request, item, headers={"ETag": etag(row.counter)})
        raise NotFound(f"There is no {kind.word} '{name}' in '{environment_key}'.")

    @extend_schema(
        operation_id="resource_put",
        summary="Create or replace a resource",
        parameters=[MESSAGE, OWNER, STRICT, ACCEPT_CASES, ACCEPT_LOSS, BREAK_GLASS, *ROLLOUT_NOW, *PRECONDITIONS],
        request={"application/json": MANIFEST, "application/yaml": MANIFEST},
        responses=described(
            202, ChangeMadeOut, 400, 401, 403, 404, 409, 412, 413, 415, 422, 428, 503, unchanged=UnchangedOut
        ),
    )
    def put(self, request: Request, environment_key: str, type: str, name: str) -> HttpResponse:  # noqa: A002
        """Store the manifest as the resource's next revision."""
        query = Query(request, (*_CONSENTS, "message", "owner", "reason", "rollout", "strict"))
        message = query.message()
        strict = query.flag("strict")
        owner = query.text("owner", at_most=150) or None
        consent = query.consent()
        now = rollout_asked(query)
        query.done()
        now.require(request, environment_key)
        kind = kind_in_path(type)
        expected = Expected(kind.word, name_in_path(kind, name))
        expect = expectation_of(request, self.environment)
        read = parsed_all([one_manifest(request)], environment_key=environment_key, expected=expected, strict=strict)
        made = change_apply(
            environment_key=environment_key,
            edits=puts_of(read, expect=expect),
            actor=principal_of(request),
            message=message,
            terms=now.terms(Terms(owner)),
            request_id=request_id(),
            consent=consent,
        )
        tag = {"ETag": etag(made.edits[0].revision)} if made.changed else None
        return change_answer(made, headers=tag, told=_readable(request, environment_key).everything)

    @extend_schema(
        operation_id="resource_patch",
        summary="Set labels or the owner of a resource",
        description=(
            "Neither reaches a client: it makes a change, but no revision and no snapshot, and is possible while the "
            "environment is on hold, frozen, or asks for reviews."
        ),
        parameters=[MESSAGE, *PRECONDITIONS],
        request=body_of_shape(ResourcePatchIn),
        responses=described(
            202, ChangeMadeOut, 400, 401, 403, 404, 409, 412, 413, 415, 422, 503, unchanged=UnchangedOut
        ),
    )
    def patch(self, request: Request, environment_key: str, type: str, name: str) -> HttpResponse:  # noqa: A002
        """Set what the body gives, and leave the rest."""
        query = Query(request, ("message",))
        message = query.message()
        query.done()
        kind = kind_in_path(type)
        # No environment demands a revision: labels are no part of one.
        is_bound = "If-Match" in request.headers or "If-None-Match" in request.headers
        expect = expectation_of(request, self.environment) if is_bound else Existing.ANY
        given = values_of(document_of(request), ResourcePatchIn)
        mark = Mark(kind, name_in_path(kind, name), given.get("owner"), given.get("labels", {}), expect=expect)
        made = change_apply(
            environment_key=environment_key,
            edits=(),
            marks=(mark,),
            actor=principal_of(request),
            message=message or words_of_marks((mark,)),
            request_id=request_id(),
        )
        return change_answer(made, told=_readable(request, environment_key).everything)

    @extend_schema(
        operation_id="resource_delete",
        summary="Delete a resource",
        parameters=[MESSAGE, ACCEPT_CASES, ACCEPT_LOSS, BREAK_GLASS, *ROLLOUT_NOW, *PRECONDITIONS],
        responses=described(202, ChangeMadeOut, 401, 403, 404, 409, 412, 422, 428, 503),
    )
    def delete(self, request: Request, environment_key: str, type: str, name: str) -> HttpResponse:  # noqa: A002
        """Delete the resource from the environment."""
        query = Query(request, (*_CONSENTS, "message", "reason", "rollout"))
        message = query.message()
        consent = query.consent()
        now = rollout_asked(query)
        query.done()
        now.require(request, environment_key)
        kind = kind_in_path(type)
        made = change_apply(
            environment_key=environment_key,
            edits=[Delete(kind, name_in_path(kind, name), expectation_of(request, self.environment))],
            actor=principal_of(request),
            message=message,
            terms=now.terms(),
            request_id=request_id(),
            consent=consent,
        )
        return change_answer(made, told=_readable(request, environment_key).everything)


class RevisionListView(ApiView):
    """List the revisions of a resource."""

    needs = {"GET": OnSome(Role.VIEWER)}

    @extend_schema(
        operation_id="revision_list",
        summary="Read a resource's history, newest first",
        parameters=PAGE,
        responses=described(200, page_of(RevisionOut), 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str, type: str, name: str) -> HttpResponse:  # noqa: A002
        """One page of the resource's revisions, newest first, deletions included."""
        kind = kind_in_path(type)
        allowed = _readable(request, environment_key)
        rows = revision_list(environment_key=environment_key, kind=kind, name=name_in_path(kind, name), allowed=allowed)
        return json_answer(plain_page(request, rows, _revision_json))


class RevisionRestoreView(ApiView):
    """Restore a revision of a resource."""

    needs = {"POST": OnSome(Role.EDITOR)}

    @extend_schema(
        operation_id="revision_restore",
        summary="Restore a revision as a new one",
        parameters=[MESSAGE, ACCEPT_CASES, ACCEPT_LOSS, BREAK_GLASS, *PRECONDITIONS],
        request=None,
        responses=described(202, ChangeMadeOut, 401, 403, 404, 409, 412, 422, 428, 503, unchanged=UnchangedOut),
    )
    def post(self, request: Request, environment_key: str, type: str, name: str, revision: int) -> HttpResponse:  # noqa: A002
        """Store the revision's content as the resource's next revision, secrets included."""
        query = Query(request, (*_CONSENTS, "message"))
        message = query.message()
        consent = query.consent()
        query.done()
        kind = kind_in_path(type)
        made = resource_restore(
            environment_key=environment_key,
            kind=kind,
            name=name_in_path(kind, name),
            revision=revision,
            actor=principal_of(request),
            message=message,
            expect=expectation_of(request, self.environment),
            request_id=request_id(),
            consent=consent,
        )
        tag = {"ETag": etag(made.edits[0].revision)} if made.changed else None
        return change_answer(made, headers=tag, told=_readable(request, environment_key).everything)


def _readable(request: Request, environment_key: str) -> Allowed:
    """The resources that the caller may read."""
    return principal_of(request).allowed(Role.VIEWER, environment_key)


def _secrets_read(request: Request, environment_key: str, names: list[str]) -> None:
    """Record in the audit log that the caller read the manifests of these secrets, although they never hold the
    values.
    """
    if names:
        secrets_read_record(
            environment_key=environment_key, names=names, actor=principal_of(request), request_id=request_id()
        )


def _manifests(request: Request, environment_key: str, rows: Sequence[Resource]) -> dict[Key, dict[str, Tree]]:
    """The manifests of the resources in these rows, by type and name. The rows were read with their contents."""
    _secrets_read(request, environment_key, [row.name for row in rows if row.type == SECRET.word])
    return {(row.type, row.name): exported_of(resource_content(row, environment_key=environment_key)) for row in rows}


def _rows_json(
    environment_key: str, rows: Sequence[Resource], manifests: Mapping[Key, dict[str, Tree]], allowed: Allowed
) -> list[dict[str, object]]:
    """The resources in these rows as JSON, as lists show them, each with its manifest where `manifests` has it.
    Resources that were deleted meanwhile are left out. `allowed`: what the caller may read; who may not read everything
    is told the status without its reasons, which name other resources and clients.
    """
    keys = [(row.type, row.name) for row in rows]
    standings = standings_of(environment_key=environment_key, keys=keys)
    return [
        {
            **_row_json(row, standings[key]),
            **({} if allowed.everything else _NO_REASONS),
            **({"manifest": manifests[key]} if key in manifests else {}),
        }
        for key, row in zip(keys, rows, strict=True)
        if key in standings
    ]


def _row_json(row: Resource, standing: Standing) -> dict[str, object]:
    value = resource_row(row)
    held_back = held_back_json(standing.held) if standing.held is not None else None
    return {
        "type": value.kind.word,
        "name": value.name,
        "revision": value.revision,
        "version": value.version,
        "owner": value.owner,
        "labels": dict(value.labels),
        "updated_at": moment(value.updated_at),
        **_status_json(standing.status),
        "proven": value.proven,
        "quarantined": value.quarantined,
        "findings": value.findings,
        "held_back": held_back,
        "held": held_back,
    }


_NO_REASONS: Final[Mapping[str, object]] = {
    "reason": "",
    "refused": None,
    "conditions": [],
    "held_back": None,
    "held": None,
}


def _status_json(found: ResourceStatus) -> dict[str, object]:
    """The status of a resource as a JSON object, in the form of interfaces.md section 8."""
    refusal = found.refusal
    refused = {"clients": refusal.clients, "sent": refusal.sent, "incident": refusal.incident} if refusal else None
    return {
        "status": found.status.value,
        "reason": found.reason,
        "refused": refused,
        "conditions": [
            {
                "type": each.type.value,
                "status": each.status.value,
                "reason": each.reason.value,
                "message": each.message,
                "since": moment(each.since),
                "revision": each.revision,
            }
            for each in found.conditions
        ],
    }


def _revision_json(row: Revision) -> dict[str, object]:
    findings = findings_at(row, (row.resource.type, row.resource.name), timezone.now())
    return {
        "revision": row.number,
        "content_hash": row.blob_id,
        "deleted": row.blob_id is None,
        "change": str(row.change.public_id),
        "author": row.change.author,
        "author_id": row.change.principal or None,
        # Of a change that wrote other resources too, the message may name those.
        "message": "" if getattr(row, "is_partly_seen", False) else row.change.message,
        "created_at": moment(row.at),
        "findings": [finding_json(each) for each in findings],
        "proven": bool(getattr(row, "proven", False)),  # annotated by `revision_list`
        "quarantined": bool(getattr(row, "quarantined", False)),
    }


_RESOURCE_PATH = f"{ENVIRONMENT_PATH}/resources/<type:type>/<rest:name>"
urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/resources", ResourceListView.as_view()),
    path(f"{_RESOURCE_PATH}/revisions/<int:revision>/restore", RevisionRestoreView.as_view()),
    path(f"{_RESOURCE_PATH}/revisions", RevisionListView.as_view()),  # before what it is also a name of
    path(_RESOURCE_PATH, ResourceView.as_view()),
]
EXAMPLES = {
    "resource_put": CLUSTER,
    "resource_patch": {"labels": {"team": "pay", "tier": None}},
}
