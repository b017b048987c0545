"""Tokens of data planes (resolutions U6): an administrator of an environment makes and ends those that are good there.

A token that is good in any environment is for administrators of all: who may choose the subject freely could otherwise
become a client of somebody else's environment.
"""

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.models import ClientToken
from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import client_token_list
from controlplane.accounts.services import client_token_create, client_token_revoke
from controlplane.api.answers import empty_answer, json_answer, moment, moment_or_none
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import plain_page
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.people import ClientTokenIn, ClientTokenMadeOut, ClientTokenOut
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.selectors import environment_list
from controlplane.errors import Forbidden, InputInvalid, NotFound
from xdscore.selectors import ClientFacts, EnvironmentChoice, choose_environment


class ClientTokenListView(ApiView):
    """The tokens of data planes one may administer."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.ANYBODY}

    @extend_schema(
        operation_id="client_token_list",
        summary="List the tokens of data planes you may administer, newest first",
        parameters=PAGE,
        responses=described(200, page_of(ClientTokenOut), 401, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """A page."""
        principal = principal_of(request)
        tokens = [token for token in client_token_list() if _administers(principal, token.environment)]
        choices = _choices()
        return json_answer(plain_page(request, tokens, lambda token: _token_json(token, choices)))

    @extend_schema(
        operation_id="client_token_create",
        summary="Make a token for data planes; it is shown once",
        description=(
            "Needs the role admin in the environment, or in all of them for a token without one. The token has the "
            "outer form of a JWT, so that gRPC clients can send it (`call_creds` of type `jwt_token_file`)."
        ),
        request=body_of_shape(ClientTokenIn),
        responses=described(201, ClientTokenMadeOut, 400, 401, 403, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Make one."""
        Query(request, ()).done()
        principal = principal_of(request)
        values = values_of(document_of(request), ClientTokenIn)
        environment = values["environment"] or ""
        if not _administers(principal, environment):
            where = f"environment '{environment}'" if environment else "any environment"
            raise Forbidden(f"A token for {where} needs the role admin there; {principal.name} does not have it.")
        choices = _choices()
        if environment and environment not in {choice.key for choice in choices}:
            raise InputInvalid(f"There is no environment '{environment}'. Nothing was changed.")
        if values["expires_at"] is not None and values["expires_at"] <= timezone.now():
            raise InputInvalid("expires_at is in the past. Nothing was changed.")
        token, plaintext = client_token_create(
            subject=values["subject"],
            environment=environment,
            actor=principal,
            expires_at=values["expires_at"],
            request_id=request_id(),
        )
        body = {**_token_json(token, choices), "token": plaintext}
        location = path_to("client-tokens", str(token.pk))
        return json_answer(body, status=201, headers={"Location": location, "Cache-Control": "no-store"})


class ClientTokenView(ApiView):
    """One token of data planes."""

    needs = {"DELETE": Needs.ANYBODY}

    @extend_schema(
        operation_id="client_token_revoke",
        summary="End a data plane's token now, and its open streams within seconds",
        responses=described(204, None, 401, 404, 422, 503),
    )
    def delete(self, request: Request, token_id: int) -> HttpResponse:
        """Revoke it; it stays listed."""
        Query(request, ()).done()
        principal = principal_of(request)
        token = client_token_list().filter(pk=token_id).first() if token_id < 2**63 else None
        if token is None or not _administers(principal, token.environment):
            raise NotFound(f"There is no client token {token_id}.")
        client_token_revoke(token=token, actor=principal, request_id=request_id())
        return empty_answer(204)


def _administers(principal: Principal, environment: str) -> bool:
    return principal.may(Role.ADMIN, environment or None)


def _choices() -> tuple[EnvironmentChoice, ...]:
    return tuple(state.choice for state in environment_list())


def _token_json(token: ClientToken, choices: tuple[EnvironmentChoice, ...]) -> dict[str, object]:
    ended = token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= timezone.now())
    leads_to = choose_environment(ClientFacts(identity=token.subject), choices)
    return {
        "id": token.pk,
        "subject": token.subject,
        "environment": token.environment or None,
        "hint": token.hint,
        "usable": not ended and token.environment in {"", leads_to},
        "created_by": token.created_by,
        "created_at": moment(token.created_at),
        "expires_at": moment_or_none(token.expires_at),
        "revoked_at": moment_or_none(token.revoked_at),
    }
