"""What an environment was, how that differs from what it is, and the way back."""

from collections.abc import Mapping
from typing import Final

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer
from controlplane.api.bodies import document_of, values_of
from controlplane.api.differences import states_json
from controlplane.api.kinds import kind_named
from controlplane.api.pages import OFFSET_PARAMETERS, counted_page, window_of
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import (
    ACCEPT_CASES,
    ACCEPT_LOSS,
    DIFF_PARAMETERS,
    PAGE,
    SNAPSHOT_FILTERS,
    body_of_shape,
    described,
    page_of,
)
from controlplane.api.shapes.changes import ChangeMadeOut, UnchangedOut
from controlplane.api.shapes.facts import DifferenceOut, RollbackIn, SnapshotEntryOut
from controlplane.api.views.base import ApiView, principal_of
from controlplane.api.views.changes import change_answer
from controlplane.catalog.contents import addresses_now, contents_at
from controlplane.catalog.manifests import manifest_of
from controlplane.snapshots.history import addresses_at, snapshot_at
from controlplane.snapshots.rollback import environment_rollback
from xdscore.snapshot import EntryKey

MAX_EPOCH: Final = 2**63 - 1  # the column
_LIVE: Final = "live"


class SnapshotResourceListView(ApiView):
    """List the resources of one snapshot."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="snapshot_resource_list",
        summary="List what a snapshot serves, by type and name",
        parameters=[*PAGE, *SNAPSHOT_FILTERS],
        responses=described(200, page_of(SnapshotEntryOut), 401, 404, 410, 422, 503),
    )
    def get(self, request: Request, environment_key: str, epoch: int) -> HttpResponse:
        """One page of the snapshot's resources. A snapshot never changes."""
        query = Query(request, (*OFFSET_PARAMETERS, "type", "manifests"))
        window = window_of(query)
        kind = query.parsed("type", kind_named, None, wanted="is no type")
        manifests = query.flag("manifests")
        query.done()
        past = snapshot_at(environment_key=environment_key, epoch=min(epoch, MAX_EPOCH))
        keys = sorted(key for key in past.served if kind is None or key[0] == kind.word)
        shown = keys[window.offset : window.offset + window.limit]
        rows: dict[EntryKey, dict[str, object]] = {}
        for key in shown:
            content = past.served[key]
            rows[key] = {"type": key[0], "name": key[1], "version": content.version, "size": content.size}
        if manifests:
            addresses = {key: past.served[key].blob.hex() for key in shown}
            for key, found in contents_at(environment_key=environment_key, addresses=addresses):
                rows[key]["manifest"] = manifest_of(found)
        return json_answer(counted_page(request, list(rows.values()), window, len(keys)))


class DifferenceView(ApiView):
    """Compare two states of an environment."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="environment_diff",
        summary="Compare two snapshots, or one with what is written now",
        parameters=DIFF_PARAMETERS,
        responses=described(200, DifferenceOut, 401, 404, 410, 422, 503),
    )
    def get(self, request: Request, environment_key: str) -> HttpResponse:
        """The resources that differ between the two states, with the fields that differ."""
        query = Query(request, ("from", "to", "text"))
        before = query.parsed("from", _state_named, None, wanted="must be an epoch or 'live'")
        after = query.parsed("to", _state_named, _LIVE, wanted="must be an epoch or 'live'")
        text = query.flag("text")
        if "from" not in request.query_params:
            query.refuse("from", "is missing", hint="Name an epoch, or 'live'.")
        query.done()
        return json_answer(
            states_json(
                _addresses(environment_key, before or _LIVE),
                _addresses(environment_key, after),
                environment_key=environment_key,
                text=text,
            )
        )


class RollbackView(ApiView):
    """Roll an environment back to an earlier snapshot."""

    needs = {"POST": Role.OPERATOR}

    @extend_schema(
        operation_id="environment_rollback",
        summary="Make the resources what an earlier snapshot served, as a new change; access rules stay",
        parameters=[ACCEPT_CASES, ACCEPT_LOSS],
        request=body_of_shape(RollbackIn),
        responses=described(
            202, ChangeMadeOut, 400, 401, 403, 404, 409, 410, 413, 415, 422, 503, unchanged=UnchangedOut
        ),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Make the resources what the earlier snapshot served and, with `hold`, refuse later changes until the hold is
        released.
        """
        query = Query(request, ("accept_cases", "accept_loss"))
        consent = query.consent()
        query.done()
        values = values_of(document_of(request), RollbackIn)
        made = environment_rollback(
            environment_key=environment_key,
            to_epoch=values["to_epoch"],
            reason=values["reason"],
            hold=values["hold"],
            actor=principal_of(request),
            request_id=request_id(),
            consent=consent,
        )
        return change_answer(made)


def _state_named(text: str) -> str | None:
    whole = text.isascii() and text.isdigit() and len(text) <= 18 and int(text) > 0
    return text if whole or text == _LIVE else None


def _addresses(environment_key: str, state: str) -> Mapping[EntryKey, str]:
    if state == _LIVE:
        return addresses_now(environment_key=environment_key)
    return addresses_at(environment_key=environment_key, epoch=int(state))


urlpatterns = [
    path(f"{ENVIRONMENT_PATH}/snapshots/<int:epoch>/resources", SnapshotResourceListView.as_view()),
    path(f"{ENVIRONMENT_PATH}/diff", DifferenceView.as_view()),
    path(f"{ENVIRONMENT_PATH}/rollback", RollbackView.as_view()),
]
EXAMPLES = {
    "environment_rollback": {"to_epoch": 1, "reason": "checkout fails", "hold": True},
}
