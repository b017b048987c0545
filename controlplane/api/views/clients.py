"""Clients: who is connected, and what each was sent, acknowledged and refused."""

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.principal import Role
from controlplane.api.answers import json_answer, moment, moment_or_none
from controlplane.api.bodies import document_of, values_of
from controlplane.api.labels import selector_of
from controlplane.api.pages import CURSOR_PARAMETERS, DEFAULT_ITEMS, MAX_ITEMS, cursor_page
from controlplane.api.paths import ENVIRONMENT_PATH
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import CLIENT_FILTERS, CURSOR, body_of_shape, described, page_of
from controlplane.api.shapes.clients import ClientPatchIn, ClientsBulkIn, ClientsLabelledOut
from controlplane.api.shapes.facts import ClientDetailOut, ClientOut, SubscriptionsOut
from controlplane.api.views.base import ApiView, Needs, principal_of, seen_environments
from controlplane.catalog.rights import require
from controlplane.clients.filtering import ClientFilter, clients_in
from controlplane.clients.labelling import LABELLER, clients_chosen
from controlplane.clients.selectors import (
    ClientSummary,
    StreamView,
    SubscriptionView,
    client_get,
    client_list,
    client_streams,
    client_subscriptions,
)
from controlplane.clients.services import clients_label
from controlplane.common.errors import NotFound
from controlplane.explain.standings import ClientStatus, client_statuses


class ClientListView(ApiView):
    """List the clients of the environments that the caller may see."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="client_list",
        summary="List clients",
        parameters=[*CURSOR, *CLIENT_FILTERS],
        responses=described(200, page_of(ClientOut, cursor=True), 401, 404, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of clients, ordered by id."""
        query = Query(request, (*CURSOR_PARAMETERS, "environment", "node_id", "identity", "connected", "label"))
        limit = query.whole("limit", DEFAULT_ITEMS, minimum=1, maximum=MAX_ITEMS)
        after, environment = query.text("after", at_most=64), query.text("environment", at_most=63)
        wanted = ClientFilter(
            node_id=query.text("node_id"),
            identity=query.text("identity", at_most=2_048),
            connected=query.flag("connected"),
            labels=query.labels(),
        )
        query.done()
        found = client_list(
            environment_keys=seen_environments(request, environment),
            wanted=wanted,
            after=after,
            limit=limit + 1,
        )
        last = found[limit - 1].id if len(found) > limit else ""
        page = found[:limit]
        standings = client_statuses(clients=page)
        rows = [_client_json(each, standings[each.id]) for each in page]
        return json_answer(cursor_page(request, rows, limit, last))


class ClientView(ApiView):
    """Read one client, and say what its labels are."""

    needs = {"GET": Needs.ANYBODY, "PATCH": Needs.CHECK}

    def check(self, request: Request, client_id: str) -> None:
        """Raise NotFound when the caller may not see the client, Forbidden when they may not label it."""
        require(principal_of(request), LABELLER, client_visible(request, client_id).environment)

    @extend_schema(
        operation_id="client_get",
        summary="Read a client with its streams",
        responses=described(200, ClientDetailOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, client_id: str) -> HttpResponse:
        """The client as it is now, with its newest streams."""
        Query(request, ()).done()
        return json_answer(_detail_json(client_visible(request, client_id)))

    @extend_schema(
        operation_id="client_patch",
        summary="Set labels of a client",
        description=(
            "Labels are notes by which people find clients. They reach no client and decide nothing: what it may read "
            "follows from its verified identity and from client groups. Needs the role operator in the client's "
            "environment. They outlast the client by 90 days, and are its own again if it returns."
        ),
        request=body_of_shape(ClientPatchIn),
        responses=described(200, ClientDetailOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def patch(self, request: Request, client_id: str) -> HttpResponse:
        """Set the labels that the body gives, and leave the rest."""
        Query(request, ()).done()
        given = values_of(document_of(request), ClientPatchIn)
        client = client_visible(request, client_id)
        clients_label(
            environment_key=client.environment,
            clients=[client.id],
            edits=given["labels"],
            actor=principal_of(request),
            request_id=request_id(),
        )
        return json_answer(_detail_json(client_get(public_id=client.id)))


class ClientsBulkView(ApiView):
    """Do one thing with many clients of an environment."""

    needs = {"POST": LABELLER}

    @extend_schema(
        operation_id="client_bulk",
        summary="Label many clients at once",
        description=(
            "All or none, at most 1,000 at once. `clients` names what is meant by id; `select` means what fits a "
            "filter now, as the list of clients reads it. Clients that are not known are answered at once, by id."
        ),
        request=body_of_shape(ClientsBulkIn),
        responses=described(200, ClientsLabelledOut, 400, 401, 403, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, environment_key: str) -> HttpResponse:
        """Label all of them."""
        Query(request, ()).done()
        given = values_of(document_of(request), ClientsBulkIn)
        done = clients_label(
            environment_key=environment_key,
            clients=given["clients"] if "clients" in given else _selected(environment_key, given["select"]),
            edits=given["labels"],
            actor=principal_of(request),
            request_id=request_id(),
        )
        return json_answer({"clients": done.clients, "changed": len(done.moved)})


class SubscriptionListView(ApiView):
    """Read the subscriptions of a client."""

    needs = {"GET": Needs.ANYBODY}

    @extend_schema(
        operation_id="client_subscriptions",
        summary="Read what the open streams of a client ask for, were sent and said",
        responses=described(200, SubscriptionsOut, 401, 404, 422, 503),
    )
    def get(self, request: Request, client_id: str) -> HttpResponse:
        """The subscriptions of all the client's open streams. There is one page: a client has a handful."""
        Query(request, ()).done()
        client_visible(request, client_id)
        found = client_subscriptions(public_id=client_id)
        return json_answer({"results": [_subscription_json(each) for each in found]})


def client_visible(request: Request, client_id: str) -> ClientSummary:
    """The client with this id. Raises NotFound, with one text, where there is none and where the caller may not see
    it.
    """
    try:
        client = client_get(public_id=client_id)
    except NotFound:
        client = None
    if client is None or not principal_of(request).may(Role.VIEWER, client.environment):
        raise NotFound(f"There is no client '{client_id[:64]}'. A client is forgotten a day after its last stream.")
    return client


def _selected(environment_key: str, given: dict[str, Any]) -> tuple[str, ...]:
    """The ids of the clients that a filter in the body means. Raises InputInvalid for a selector that cannot be read,
    and InputTooLarge.
    """
    wanted = ClientFilter(
        node_id=given.get("node_id", ""),
        identity=given.get("identity", ""),
        connected=given.get("connected", False),
        labels=selector_of(given.get("label", "")),
    )
    return clients_chosen(clients_in(environment_keys=[environment_key], wanted=wanted))


def _detail_json(client: ClientSummary) -> dict[str, object]:
    streams = [_stream_json(stream) for stream in client_streams(public_id=client.id)]
    standing = client_statuses(clients=[client])[client.id]
    return {**_client_json(client, standing), "recent_streams": streams}


def _client_json(client: ClientSummary, standing: ClientStatus) -> dict[str, object]:
    return {
        "id": client.id,
        "environment": client.environment,
        "identity": client.identity,
        "node_id": client.node_id,
        "node_cluster": client.node_cluster,
        "family": client.family.value,
        "user_agent": client.user_agent,
        "user_agent_version": client.user_agent_version,
        "standing": standing.value,
        "connected": client.connected,
        "streams": client.streams,
        "first_seen": moment(client.first_seen),
        "last_seen": moment(client.last_seen),
        "labels": dict(client.labels),
        "types": [
            {"type": each.type, "state": each.state.value, "wildcard": each.wildcard, "names": each.names}
            for each in client.types
        ],
    }


def _stream_json(stream: StreamView) -> dict[str, object]:
    return {
        "id": stream.id,
        "replica": stream.replica,
        "variant": stream.variant,
        "peer": stream.peer,
        "opened_at": moment(stream.opened_at),
        "closed_at": moment_or_none(stream.closed_at),
        "cause": stream.cause,
    }


def _subscription_json(subscription: SubscriptionView) -> dict[str, object]:
    return {
        "stream": subscription.stream,
        "type": subscription.type,
        "wildcard": subscription.wildcard,
        "names": list(subscription.names),
        "state": subscription.state.value,
        "sent": subscription.sent,
        "sent_at": moment_or_none(subscription.sent_at),
        "acked": subscription.acked,
        "acked_at": moment_or_none(subscription.acked_at),
    }


urlpatterns = [
    path("clients", ClientListView.as_view()),
    path("clients/<slug:client_id>", ClientView.as_view()),
    path("clients/<slug:client_id>/subscriptions", SubscriptionListView.as_view()),
    path(f"{ENVIRONMENT_PATH}/clients/bulk", ClientsBulkView.as_view()),
]
EXAMPLES = {
    "client_patch": {"labels": {"team": "pay", "old": None}},
    "client_bulk": {"act": "labels", "select": {"label": "team=pay"}, "labels": {"tier": "1"}},
}
