"""Holdings: what a client has of each resource, and which clients have what of one (interfaces.md section 8)."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment_or_none
from controlplane.api.kinds import kind_in_path, name_in_path
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.schema import CURSOR, HOLDER_FILTERS, HOLDING_FILTERS, described, page_of
from controlplane.api.shapes.holdings import HoldingOut, ResourceClientsOut
from controlplane.api.views.base import ApiView, Needs
from controlplane.api.views.clients import client_visible
from controlplane.clients.clock import database_now
from controlplane.clients.held_rows import HeldResource
from controlplane.clients.holdings import Counts, client_holdings, resource_holders
from controlplane.http.moments import moment_named
from xdscore.holdings import HoldingState
from xdscore.resource_types import by_url, by_word

_MAX_CURSOR_CHARS: Final = 4_096  # a type's word and a name, which has fewer
_REVISION: Final = re.compile(r"r?(\d{1,18})", re.ASCII)


class ClientResourcesView(ApiView):
    """Read what a client has of each resource that it asks for."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="client_resources",
        summary="Read what a client has of each resource, in which revision, since when",
        parameters=[*CURSOR, *HOLDING_FILTERS],
        responses=described(200, page_of(HoldingOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request, client_id: str) -> HttpResponse:
        """One page of what the client has, by type and name; with `at`, of what it had then."""
        query = Query(request, (*CURSOR_PARAMETERS, "name", "at"), repeatable=("type", "state"))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        # Not `text`: the name in it is what some client asked for, and may hold any character.
        after = query.parsed("after", _cursor, "", wanted=f"must have at most {_MAX_CURSOR_CHARS} characters")
        types, states, name, at = _types(query), _states(query), query.text("name"), _time_kept(query)
        query.done()
        client_visible(request, client_id)
        held = client_holdings(
            public_id=client_id, types=types, states=states, name=name, at=at, after=after, limit=limit
        )
        return json_answer(cursor_page(request, [_row_json(each) for each in held.rows], limit, held.after))


class ResourceClientsView(ApiView):
    """Read which clients have what of a resource."""

    needs = {"GET": Role.VIEWER}

    @extend_schema(
        operation_id="resource_clients",
        summary="Count and list the connected clients that ask for a resource, by what they have of it",
        parameters=[*CURSOR, *HOLDER_FILTERS],
        responses=described(200, ResourceClientsOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, environment_key: str, type: str, name: str) -> HttpResponse:  # noqa: A002
        """The counts of all, and one page of clients by id. Clients may ask for what was never stored here."""
        query = Query(request, (*CURSOR_PARAMETERS, "revision"), repeatable=("state",))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        after, states = query.text("after", at_most=64), _states(query)
        revision = query.parsed("revision", _revision, None, wanted="must be a revision such as 12 or r12")
        query.done()
        kind = kind_in_path(type)
        counts, held = resource_holders(
            environment_key=environment_key,
            key=(kind.word, name_in_path(kind, name)),
            states=states,
            revision=revision,
            after=after,
            limit=limit,
        )
        rows = [{"client": each.client, "node_id": each.node_id, **_row_json(each)} for each in held.rows]
        return json_answer({"counts": _counts_json(counts), **cursor_page(request, rows, limit, held.after)})


def _types(query: Query) -> tuple[str, ...]:
    """The words of the types that the parameter `type` names, each by its word or type URL."""
    known = {name: kind.word for names in (by_word, by_url) for name, kind in names.items()}
    return tuple(known[given] for given in query.words("type", known))


def _states(query: Query) -> tuple[HoldingState, ...]:
    return tuple(HoldingState(each) for each in query.words("state", [state.value for state in HoldingState]))


def _time_kept(query: Query) -> datetime | None:
    """The time of the parameter `at`, by the clock of what is stored; None where it is not given. Notes a problem where
    nothing is known of that time.
    """
    wanted = "must be a time with its offset from UTC, such as 2026-07-01T12:00:00Z"
    at = query.parsed("at", moment_named, None, wanted=wanted)
    if at is None:
        return None
    now, hours = database_now(), settings.PARLEY.limits.holding_history_h
    if at > now:
        query.refuse("at", "is in the future: what clients will have is not known")
    elif at < now - timedelta(hours=hours):
        query.refuse("at", f"is too long ago: what clients had is kept for {hours} h")
    return at


def _cursor(text: str) -> str | None:
    return text if len(text) <= _MAX_CURSOR_CHARS else None


def _revision(text: str) -> int | None:
    match = _REVISION.fullmatch(text)
    return int(match[1]) if match else None


def _row_json(row: HeldResource) -> dict[str, object]:
    return {
        "type": row.type,
        "name": row.name,
        "state": row.state.value,
        "revision": row.revision,
        "version": row.version or None,
        "acked_revision": row.acked_revision,
        "acked_version": row.acked_version or None,
        "code": row.code or None,
        "message": row.message or None,
        "since": moment_or_none(row.since),
    }


def _counts_json(counts: Counts) -> Mapping[str, Mapping[str, int]]:
    """The counts by state, in the order of `HoldingState`; in each the largest first."""
    return {
        state.value: dict(sorted(counts[state].items(), key=lambda item: (-item[1], item[0])))
        for state in HoldingState
        if state in counts
    }


# Before the resources themselves, whose names may end in the same word: the modules are read by name.
urlpatterns = [
    path("clients/<slug:client_id>/resources", ClientResourcesView.as_view()),
    path(f"{ENVIRONMENT_PATH}/resources/<type:type>/<rest:name>/clients", ResourceClientsView.as_view()),
]
