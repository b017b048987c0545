"""What client groups and access rules have in common: rows of an environment that are listed, made, read, replaced,
changed in parts and deleted. Each write is judged by what clients would lose, and is a change that is named beside the
row.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypedDict

from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from controlplane.access.values import AccessWritten, GroupState, RuleState
from controlplane.accounts.principal import Principal, Role
from controlplane.api.answers import json_answer
from controlplane.api.bodies import document_of, values_of
from controlplane.api.fields import StrictSerializer
from controlplane.api.pages import plain_page
from controlplane.api.paths import path_to
from controlplane.api.problems import finding_json
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.views.base import ApiView, principal_of
from controlplane.api.views.guarding import Guarded, dry_run_answer, guarded
from controlplane.catalog.guarding import Consent


class Writing(TypedDict):
    """What every write of a client group or access rule is told: in which environment, by whom, by which request, why,
    and whether it is a dry run.
    """

    environment_key: str
    actor: Principal
    request_id: str
    reason: str
    dry_run: bool


class AccessRowsView(ApiView, ABC):
    """The base class of the views that list and create client groups, or access rules. `shape`: what a request body
    holds; `word`: the part of the path that stands for them, such as `rules`.
    """

    needs = {"GET": Role.VIEWER, "POST": Role.ACCESS_EDITOR}
    shape: ClassVar[type[StrictSerializer]]
    word: ClassVar[str]

    @abstractmethod
    def rows(self, environment_key: str) -> "QuerySet[Any]":
        """The environment's client groups, or access rules, in the order in which they are listed."""

    @abstractmethod
    def state(self, row: Any) -> GroupState | RuleState:
        """The client group or access rule that is stored in this row."""

    @abstractmethod
    def create(self, values: dict[str, Any], consent: Consent, writing: Writing) -> tuple[AccessWritten, str]:
        """Create a client group or access rule; returns what was written, and the key or id under which it is
        addressed.
        """

    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """One page of the environment's client groups or access rules."""
        return json_answer(plain_page(request, self.rows(environment_key), lambda row: _row_json(self.state(row))))

    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Create the client group or access rule in the body."""
        asked = guarded(request, "break_glass")
        values = values_of(document_of(request), self.shape)
        made, address = self.create(values, asked.consent, _writing(request, environment_key, asked))
        if asked.dry_run:
            return dry_run_answer(request, made.loss, made.findings)
        location = path_to("environments", environment_key, self.word, address)
        return json_answer(_written_json(made), status=201, headers={"Location": location})


class AccessRowView(ApiView, ABC):
    """The base class of the views of one client group, or one access rule. `shape`: what a request body holds. `at`, in
    the methods: the parts of the path behind the environment, such as `rule_id`.
    """

    needs = {"GET": Role.VIEWER, "PUT": Role.ACCESS_EDITOR, "PATCH": Role.ACCESS_EDITOR, "DELETE": Role.ACCESS_EDITOR}
    shape: ClassVar[type[StrictSerializer]]

    @abstractmethod
    def read(self, environment_key: str, *args: Any, **at: Any) -> GroupState | RuleState:
        """The client group or access rule that the path names. Raises NotFound."""

    @abstractmethod
    def update(
        self, values: dict[str, Any], consent: Consent, writing: Writing, *args: Any, **at: Any
    ) -> AccessWritten:
        """Replace the client group or access rule by one with these values."""

    @abstractmethod
    def remove(self, consent: Consent, writing: Writing, *args: Any, **at: Any) -> AccessWritten:
        """Delete the client group or access rule; returns it as it was."""

    def get(self, request: Request, environment_key: str, **at: Any) -> HttpResponse:
        """The client group or access rule as it is stored now."""
        Query(request, ()).done()
        return json_answer(_row_json(self.read(environment_key, **at)))

    def put(self, request: Request, environment_key: str, **at: Any) -> HttpResponse:
        """Replace the client group or access rule by the one in the body."""
        asked = guarded(request, "break_glass")
        values = values_of(document_of(request), self.shape)
        return self._updated(request, environment_key, asked, values, at)

    def patch(self, request: Request, environment_key: str, **at: Any) -> HttpResponse:
        """Change those fields of the client group or access rule that the body has; the others stay."""
        asked = guarded(request, "break_glass")
        given = values_of(document_of(request), self.shape, partial=True)
        values = {**self.read(environment_key, **at).draft.as_json(), **given}
        return self._updated(request, environment_key, asked, values, at)

    def delete(self, request: Request, environment_key: str, **at: Any) -> HttpResponse:
        """Delete the client group or access rule; the answer is what it was."""
        asked = guarded(request, "break_glass")
        gone = self.remove(asked.consent, _writing(request, environment_key, asked), **at)
        return _written(request, asked, gone)

    def _updated(
        self, request: Request, environment_key: str, asked: Guarded, values: dict[str, Any], at: dict[str, Any]
    ) -> HttpResponse:
        made = self.update(values, asked.consent, _writing(request, environment_key, asked), **at)
        return _written(request, asked, made)


def _writing(request: Request, environment_key: str, asked: Guarded) -> Writing:
    return Writing(
        environment_key=environment_key,
        actor=principal_of(request),
        request_id=request_id(),
        reason=asked.reason,
        dry_run=asked.dry_run,
    )


def _written(request: Request, asked: Guarded, written: AccessWritten) -> HttpResponse:
    """The answer to a write of a client group or access rule: what it is now, with the change; to a dry run, the loss
    and the findings.
    """
    if asked.dry_run:
        return dry_run_answer(request, written.loss, written.findings)
    return json_answer(_written_json(written))


def _written_json(written: AccessWritten) -> dict[str, object]:
    """The written client group or access rule as JSON, with the change that wrote it."""
    findings = [finding_json(finding) for finding in written.findings]
    return {"id": written.id, **written.row, "change": written.change_id or None, "findings": findings}


def _row_json(state: GroupState | RuleState) -> dict[str, object]:
    return {"id": state.id, **state.draft.as_json()}
