"""One resource: what it is now, what it was, what it needs and who has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.http import urlencode

from controlplane.accounts.principal import Role
from controlplane.catalog.contents import contents_of_revisions
from controlplane.catalog.limiting import may_write
from controlplane.catalog.link_trees import users_tree, uses_tree
from controlplane.catalog.manifests import manifest_lines, manifest_of
from controlplane.catalog.models import Resource, Revision
from controlplane.catalog.rights import OnSome, require_some
from controlplane.catalog.selectors import resource_content, resource_get, resource_named, resource_row, revision_list
from controlplane.catalog.services import (
    change_apply,
    change_plan,
    resource_restore,
    revision_parsed,
    secrets_read_record,
)
from controlplane.catalog.values import ChangeMade, Delete, Edit, Put, finding_from_json
from controlplane.changesets.selectors import change_sets_writing
from controlplane.clients.nack_times import nack_times_of_name
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.charts import DAY, kept_nacks_chart, recent
from controlplane.console.comments import comments_shown
from controlplane.console.holders import holders_shown
from controlplane.console.marking import marked
from controlplane.console.pages import Page
from controlplane.console.paging import paged
from controlplane.console.proposing import INTO, PROPOSE, PROPOSED, propose
from controlplane.console.resources import lines_of, resource_url, subject_of
from controlplane.discussion.selectors import resource_subject
from controlplane.explain.reach import reach_of
from controlplane.incidents.selectors import incidents_of_name
from controlplane.incidents.values import IncidentState
from xdscore.findings import Finding
from xdscore.resource_types import LISTENER, ROUTE, VIRTUAL_HOST, ResourceType
from xdscore.schema import Tree
from xdscore.schema.differences import unified_text
from xdscore.schema.yaml_out import yaml_of
from xdscore.snapshot import ttl_ms_of, ttl_text

TABS: Final = (
    ("current", "Current"),
    ("history", "History"),
    ("links", "Uses and used by"),
    ("clients", "Clients"),
    ("access", "Access"),
    ("incidents", "Incidents"),
    ("comments", "Comments"),
)
_OF_DELETED: Final = ("history", "comments")
_TELLS_PROPOSALS: Final = ("current", "history")
_HISTORY_SIZE: Final = 10
_MAX_POINTER: Final = 2_000
# What decides where requests go.
_ROUTING: Final = (LISTENER, ROUTE, VIRTUAL_HOST)


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """A revision in the history of a resource.

    `to_previous`: the unified difference from the revision before.
    `to_current`: the unified difference to the newest revision.
    `restorable`: it has content, and is not the newest.
    """

    number: int
    deleted: bool
    author: str
    message: str
    change: str
    at: datetime
    proven: bool
    quarantined: bool
    findings: tuple[Finding, ...]
    to_previous: str
    to_current: str
    restorable: bool

    @property
    def changed_label(self) -> str:
        """A label, for screen readers, of the difference from the revision before."""
        return f"What r{self.number} changed"

    @property
    def current_label(self) -> str:
        """A label, for screen readers, of the difference to the newest revision."""
        return f"From r{self.number} to the current one"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two revisions of a resource, by their numbers. `text`: the unified difference between them."""

    before: int
    after: int
    text: str

    @property
    def label(self) -> str:
        """A label, for screen readers, of the difference."""
        return f"Lines that differ from r{self.before} to r{self.after}"


class ResourcePage(Page):
    """The page of one resource, with tabs. Of a deleted resource only the history and the comments are shown."""

    template = "resources/detail.html"
    needs = {"GET": Role.VIEWER, "POST": OnSome(Role.EDITOR)}
    why = "message"

    def get(self, request: HttpRequest, environment_key: str, error: ControlPlaneError | None = None) -> HttpResponse:
        """The tab that the URL names. For a script beside the form to delete the resource: what clients would lose by
        that.
        """
        kind, name = subject_of(request)
        if request.GET.get("part") == "deletion":
            require_some(self.principal, Role.EDITOR, environment_key)
            return self.foreseen(
                lambda: (
                    change_plan(environment_key=environment_key, edits=[Delete(kind, name)], asker=self.principal).loss
                )
            )
        row = _row(environment_key, kind, name)
        content = resource_content(row, environment_key=environment_key) if row is not None else None
        tab = request.GET.get("tab", "current")
        if tab not in dict(TABS) or (content is None and tab not in _OF_DELETED):
            tab = "current" if content is not None else "history"
        incidents = incidents_of_name(environment_key=environment_key, word=kind.word, name=name)
        context: dict[str, object] = {
            "kind": kind,
            "name": name,
            "content": content,
            "ttl": ttl_text(ttl_ms) if (ttl_ms := _ttl_ms(row)) else "",
            "line": next(iter(lines_of(environment_key, [resource_row(row)])), None) if row is not None else None,
            "incidents": incidents,
            "proposed": change_sets_writing(environment_key=environment_key, key=(kind.word, name))
            if tab in _TELLS_PROPOSALS
            else (),
            "tab": tab,
            "tabs": [each for each in TABS if content is not None or each[0] in _OF_DELETED],
            "url": resource_url(environment_key, kind.word, name),
            "edit_url": resource_url(environment_key, kind.word, name, "resource-edit"),
            "error": error,
            "may_operate": self.may(Role.OPERATOR),
            "may_edit": may_write(self.principal, environment_key, (kind.word, name)),
            "request_url": _request_url(environment_key, kind, name),
        }
        show: Callable[[ResourceType, str], dict[str, object]] = getattr(self, f"_{tab}")
        return self.page({**context, **show(kind, name)}, status=error.status if error else 200)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Restore a revision, or delete the resource, whichever the form names; or propose to do so."""
        kind, name = subject_of(request)
        if request.POST.get("action") == PROPOSE:
            return self._proposed(kind, name)
        try:
            made = self._written(request, kind, name)
        except ControlPlaneError as error:
            return self.get(request, environment_key, error)
        if not made.changed:
            messages.info(request, "Nothing had to change: that content is current.")
            return redirect(resource_url(environment_key, kind.word, name))
        return redirect("change", made.change_id)

    def _proposed(self, kind: ResourceType, name: str) -> HttpResponse:
        """Ask into which change set the deletion or the restored content goes or, once that was answered, put it
        there.
        """
        given = self.request.POST
        if INTO not in given:
            return self.proposal_page()
        try:
            message = given.get("message", "").strip()[:1_000]
            public_id = propose(
                given,
                self._edits(kind, name),
                environment_key=self.here.key,
                message=message,
                actor=self.principal,
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return self.proposal_page(error)
        messages.success(self.request, PROPOSED)
        return redirect("change-set", public_id)

    def _edits(self, kind: ResourceType, name: str) -> tuple[Edit, ...]:
        """What the form would write. Raises ControlPlaneError."""
        if self.request.POST.get("delete"):
            return (Delete(kind, name),)
        number = _restored(self.request.POST)
        return (Put(revision_parsed(environment_key=self.here.key, kind=kind, name=name, revision=number)),)

    def _written(self, request: HttpRequest, kind: ResourceType, name: str) -> ChangeMade:
        message = request.POST.get("message", "").strip()[:1_000]
        if request.POST.get("delete"):
            return change_apply(
                environment_key=self.here.key,
                edits=[Delete(kind, name)],
                actor=self.principal,
                message=message,
                request_id=self.request_id,
                consent=self.consent,
            )
        return resource_restore(
            environment_key=self.here.key,
            kind=kind,
            name=name,
            revision=_restored(request.POST),
            actor=self.principal,
            message=message,
            request_id=self.request_id,
            consent=self.consent,
        )

    def _current(self, kind: ResourceType, name: str) -> dict[str, object]:
        content = resource_get(environment_key=self.here.key, kind=kind, name=name)
        manifest = manifest_of(content)
        text, pointer = yaml_of(manifest), self.request.GET.get("at", "")[:_MAX_POINTER]
        lines = manifest_lines(kind, content.name, content.any_bytes, content.ttl_ms) if pointer else None
        at = marked(text, manifest, lines, pointer)
        shown: dict[str, object] = {"text": text, "findings": content.findings, "marked": at}
        if not kind.secret:
            return shown
        secrets_read_record(
            environment_key=self.here.key, names=[name], actor=self.principal, request_id=self.request_id
        )
        return {**shown, **self._access(kind, name)}

    def _history(self, kind: ResourceType, name: str) -> dict[str, object]:
        rows = revision_list(environment_key=self.here.key, kind=kind, name=name)
        page = paged(self.request, rows, lambda row: row, size=_HISTORY_SIZE)
        newest = rows[0].number
        wanted = {newest} | {row.number for row in page.items} | {row.number - 1 for row in page.items}
        contents = contents_of_revisions(environment_key=self.here.key, kind=kind, name=name, numbers=wanted)
        trees: dict[int, Tree] = {number: manifest_of(content) for number, content in contents.items()}
        label = f"{kind.word}/{name}"
        steps = page.showing(_steps(page.items, trees, newest, label))
        return {"page": steps, "newest": newest, "compared": self._compared(kind, name)}

    def _compared(self, kind: ResourceType, name: str) -> Comparison | None:
        """The difference between the two revisions that the URL names; None where it names none, or one of them has no
        content.
        """
        before, after = (_number(self.request.GET.get(key, "")) for key in ("from", "to"))
        if before is None or after is None:
            return None
        contents = contents_of_revisions(environment_key=self.here.key, kind=kind, name=name, numbers=[before, after])
        if before not in contents or after not in contents:
            return None
        trees = [manifest_of(contents[each]) for each in (before, after)]
        return Comparison(before, after, unified_text(f"{kind.word}/{name}", *trees))

    def _links(self, kind: ResourceType, name: str) -> dict[str, object]:
        key = self.here.key
        return {
            "uses": uses_tree(environment_key=key, kind=kind, name=name),
            "used_by": users_tree(environment_key=key, kind=kind, name=name),
        }

    def _incidents(self, kind: ResourceType, name: str) -> dict[str, object]:
        past = incidents_of_name(environment_key=self.here.key, word=kind.word, name=name, states=tuple(IncidentState))
        window = recent(DAY)
        rows = nack_times_of_name(environment_key=self.here.key, word=kind.word, name=name, since=window.since)
        return {"every_incident": past, "chart": kept_nacks_chart(rows, window, label="family")}

    def _comments(self, kind: ResourceType, name: str) -> dict[str, object]:
        return dict(comments_shown(self, resource_subject(self.principal, self.here.key, kind, name)))

    def _clients(self, kind: ResourceType, name: str) -> dict[str, object]:
        return {"holders": holders_shown(self.request, self.here.key, kind, name)}

    def _access(self, kind: ResourceType, name: str) -> dict[str, object]:
        return {"reach": reach_of(environment_key=self.here.key, kind=kind, name=name)}


def _row(environment_key: str, kind: ResourceType, name: str) -> Resource | None:
    """The row of the resource; None when it is deleted. Raises NotFound where there never was one of this name."""
    try:
        return resource_named(environment_key=environment_key, kind=kind, name=name)
    except NotFound:
        revision_list(environment_key=environment_key, kind=kind, name=name)
        return None


def _request_url(environment_key: str, kind: ResourceType, name: str) -> str:
    """The page that says where a request goes, if resources of this type have a part in that; a listener is filled
    in.
    """
    if kind not in _ROUTING:
        return ""
    asked = f"?{urlencode({'listener': name})}" if kind is LISTENER else ""
    return reverse("request", args=[environment_key]) + asked


def _ttl_ms(row: Resource | None) -> int:
    """The ttl that clients are told of, in milliseconds; 0 where there is none."""
    return ttl_ms_of(row.head.version) if row is not None and row.head is not None else 0


def _restored(given: QueryDict) -> int:
    """The number of the revision that the form restores. Raises InputInvalid where it names none."""
    number = _number(given.get("restore", ""))
    if number is None:
        raise InputInvalid("The form names nothing to do. Nothing was changed.")
    return number


def _number(text: str) -> int | None:
    """The number of a revision; None where the text is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _steps(rows: Sequence[Revision], trees: dict[int, Tree], newest: int, label: str) -> list[RevisionLine]:
    return [
        RevisionLine(
            number=row.number,
            deleted=row.blob_id is None,
            author=row.change.author,
            message=row.change.message,
            change=str(row.change.public_id),
            at=row.at,
            proven=bool(getattr(row, "proven", False)),  # annotated by `revision_list`
            quarantined=bool(getattr(row, "quarantined", False)),
            findings=tuple(finding_from_json(each) for each in row.findings),
            to_previous=unified_text(label, trees.get(row.number - 1), trees.get(row.number)),
            to_current=unified_text(label, trees.get(row.number), trees.get(newest)) if row.number != newest else "",
            restorable=row.blob_id is not None and row.number != newest,
        )
        for row in rows
    ]


urlpatterns = [
    path("e/<str:environment_key>/resource", ResourcePage.as_view(), name="resource"),
]
