"""Apply: many edits as one atomic, idempotent change; and the same without any effect (`?dry_run=true`).

The body is an apply document in JSON or YAML, or plain manifests in any form that interfaces.md section 3 names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.access.selectors import secret_findings
from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer
from controlplane.api.bodies import documents_of, located_in, values_of
from controlplane.api.differences import content_edits, edits_json, impact_json
from controlplane.api.examples import CLUSTER
from controlplane.api.kinds import kind_named, type_words
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import APPLY_PARAMETERS, PLAIN, described, manifests_body
from controlplane.api.shapes.changes import ApplyIn, ChangeMadeOut, NotAppliedOut
from controlplane.api.views.base import ApiView, principal_of
from controlplane.api.views.changes import change_answer, marked_json
from controlplane.api.views.guarding import rollout_asked
from controlplane.builder.deep.unasked import not_judged_of
from controlplane.builder.selectors import generation_of_epoch
from controlplane.catalog.reading import manifests_at, manifests_in, parsed_all, placed, puts_of
from controlplane.catalog.rights import OnSome
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import Terms, change_apply, change_plan
from controlplane.catalog.values import Delete, Edit
from controlplane.common.errors import Conflict, InputInvalid, InputTooLarge
from controlplane.explain.reach import impact_read
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.names import canonical, name_problem
from xdscore.schema import Manifest
from xdscore.schema.codes import NAME_REFUSED, VALUE_REFUSED
from xdscore.schema.containers import RESPONSE_KEYS
from xdscore.schema.positions import Path
from xdscore.schema.text import Document

PARAMETERS = (
    *("accept_cases", "accept_loss", "break_glass", "dry_run", "message", "owner"),
    *("prune", "reason", "rollout", "strict", "text"),
)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An apply whose body is read, but whose manifests are not parsed yet. `base_epoch`: the epoch of the snapshot that
    the caller looked at; None where the request names none.
    """

    manifests: tuple[Manifest, ...]
    deletions: tuple[Delete, ...]
    notes: tuple[Finding, ...]
    message: str
    owner: str | None
    prune: bool
    base_epoch: int | None = None


class ApplyView(ApiView):
    """Apply manifests and deletions to one environment."""

    needs = {"POST": OnSome(Role.EDITOR)}

    @extend_schema(
        operation_id="apply",
        summary="Make many edits as one change, or say what they would do",
        parameters=APPLY_PARAMETERS,
        request=manifests_body(ApplyIn, PLAIN),
        responses=described(202, ChangeMadeOut, 400, 401, 403, 404, 409, 413, 415, 422, 503, unchanged=NotAppliedOut),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Store all manifests and deletions of the body as one change, or none of them."""
        query = Query(request, PARAMETERS)
        dry_run = query.flag("dry_run")
        text = query.flag("text")
        strict = query.flag("strict")
        consent = query.consent()
        now = rollout_asked(query)
        wanted = _wanted(documents_of(request), query)
        query.done()
        now.require(request, environment_key)
        told = principal_of(request).may(Role.VIEWER, environment_key)
        read = parsed_all(wanted.manifests, environment_key=environment_key, strict=strict)
        edits: list[Edit] = [*puts_of(read), *wanted.deletions]
        base = _generation(environment_key, wanted.base_epoch)
        terms = now.terms(Terms(wanted.owner, wanted.prune, base, strict=strict))
        if dry_run:
            with placed(wanted.manifests, read):
                planned = change_plan(
                    environment_key=environment_key, edits=edits, asker=principal_of(request), terms=terms
                )
            diff = edits_json(planned.edits, environment_key=environment_key, parsed=read.parsed, text=text)
            closed = secret_findings(environment_key=environment_key, edits=planned.edits) if told else ()
            body = {
                "changed": bool(planned.edits or planned.marked),
                "dry_run": True,
                "diff": diff,
                "labels": marked_json(planned.marked)["labels"],
                "loss": planned.loss.as_json(),
                "findings": [finding_json(each) for each in (*wanted.notes, *planned.findings, *closed)],
                "not_judged": [each.as_json() for each in not_judged_of(planned, read.parsed, told=told)],
            }
            if told:
                body["impact"] = impact_json(impact_read(environment_key=environment_key, edits=content_edits(diff)))
            return json_answer(body)
        with placed(wanted.manifests, read):
            made = change_apply(
                environment_key=environment_key,
                edits=edits,
                actor=principal_of(request),
                message=wanted.message,
                terms=terms,
                request_id=request_id(),
                consent=consent,
            )
        return change_answer(made, notes=wanted.notes, told=told)


def _wanted(documents: Sequence[Document], query: Query) -> _Wanted:
    """The apply that the body and the query ask for together. What both give is taken from the body."""
    message = query.message()
    owner = query.text("owner", at_most=150) or None
    prune = query.flag("prune")
    if len(documents) != 1 or not _is_apply(documents[0]):
        manifests, notes = manifests_in(documents)
        return _within_limit(_Wanted(manifests, (), notes, message, owner, prune))
    document = documents[0]
    values = values_of(document, ApplyIn)
    manifests, notes = manifests_at(document, "/resources") if values.get("resources", []) != [] else ((), ())
    return _within_limit(
        _Wanted(
            manifests=manifests,
            deletions=deletions_of(document, values["delete"]),
            notes=notes,
            message=values["message"] or message,
            owner=values["owner"] or owner,
            prune=values["prune"] or prune,
            base_epoch=values["base_epoch"],
        )
    )


# What makes an object an apply document rather than a resource or one of Envoy's own containers: no other of them has
# these keys, and a DiscoveryResponse, which has `resources` too, has one of the second set.
_APPLY_KEYS = frozenset(ApplyIn().fields)
_OTHER_KEYS = (RESPONSE_KEYS - {"resources"}) | {"static_resources", "staticResources", "configs"}


def _is_apply(document: Document) -> bool:
    tree = document.tree
    return isinstance(tree, dict) and not (tree.keys() & _OTHER_KEYS) and bool(tree.keys() & _APPLY_KEYS or not tree)


def deletions_of(document: Document, values: Sequence[dict[str, str]]) -> tuple[Delete, ...]:
    """An edit for each resource to delete; deleting one that does not exist is no error. Raises InputInvalid with every
    problem.
    """
    deletions: list[Delete] = []
    findings: list[Finding] = []

    def refuse(path: Path, code: str, detail: str) -> None:
        findings.append(located_in(document, path, Finding(code=code, severity=Severity.ERROR, detail=detail)))

    for index, value in enumerate(values):
        kind = kind_named(value["type"])
        problem = name_problem(value["name"])
        if kind is None:
            detail = f"There is no type '{shown(value['type'])}'. Types are {type_words()}, or their type URLs."
            refuse(("delete", index, "type"), VALUE_REFUSED.code, detail)
        if problem:
            refuse(("delete", index, "name"), NAME_REFUSED.code, f"The name {problem}.")
        if kind is not None and not problem:
            deletions.append(Delete(kind, canonical(value["name"]), missing_ok=True))
    if findings:
        raise InputInvalid(
            f"{len(findings)} entries of 'delete' cannot be used. Nothing was changed.", findings=tuple(findings)
        )
    return tuple(deletions)


def _within_limit(wanted: _Wanted) -> _Wanted:
    limit: int = settings.PARLEY.limits.apply_items
    count = len(wanted.manifests) + len(wanted.deletions)
    if count > limit:
        raise InputTooLarge(f"The apply holds {count:,} items; at most {limit:,} are allowed. Nothing was changed.")
    return wanted


def _generation(environment_key: str, base_epoch: int | None) -> int | None:
    """The catalogue's generation at which the snapshot of this epoch was built; None for None. Raises InputInvalid for
    an epoch that does not exist yet, and Conflict for one that is no longer stored.
    """
    if base_epoch is None:
        return None
    current = environment_get(key=environment_key).epoch
    if base_epoch > current:
        raise InputInvalid(
            f"base_epoch is {base_epoch}, but '{environment_key}' is at snapshot {current}. Nothing was changed."
        )
    generation = generation_of_epoch(environment_key=environment_key, epoch=base_epoch)
    if generation is None:
        raise Conflict(
            f"Snapshot {base_epoch} of '{environment_key}' is no longer known. Look at it again. Nothing was changed."
        )
    return generation


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/apply", ApplyView.as_view()),
]
EXAMPLES = {
    "apply": {"resources": [CLUSTER], "delete": [{"type": "cluster", "name": "old"}], "message": "new weights"},
}
