"""API tokens: an administrator of an environment makes and ends tokens for that environment, and no others."""

from datetime import datetime

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import Principal, Role, Scope
from controlplane.accounts.selectors import api_token_list
from controlplane.accounts.services import api_token_create, api_token_revoke
from controlplane.api.answers import empty_answer, json_answer, moment, moment_or_none
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import plain_page
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.people import TokenIn, TokenMadeOut, TokenOut
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.selectors import environment_list
from controlplane.errors import Forbidden, InputInvalid, NotFound


class TokenListView(ApiView):
    """The tokens one may administer."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.ANYBODY}

    @extend_schema(
        operation_id="token_list",
        summary="List the tokens you may administer, newest first",
        parameters=PAGE,
        responses=described(200, page_of(TokenOut), 401, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """A page."""
        principal = principal_of(request)
        tokens = [token for token in api_token_list() if _administers(principal, token)]
        return json_answer(plain_page(request, tokens, _token_json))

    @extend_schema(
        operation_id="token_create",
        summary="Make a token; it is shown once",
        description="Needs the role admin for every scope that the token is given.",
        request=body_of_shape(TokenIn),
        responses=described(201, TokenMadeOut, 400, 401, 403, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Make one."""
        Query(request, ()).done()
        principal = principal_of(request)
        values = values_of(document_of(request), TokenIn)
        scopes = tuple(Scope(Role(scope["role"]), scope["environment"]) for scope in values["scopes"])
        for scope in scopes:
            if not principal.may(Role.ADMIN, scope.environment):
                where = f"environment '{scope.environment}'" if scope.environment is not None else "all environments"
                raise Forbidden(f"A token for {where} needs the role admin there; {principal.name} does not have it.")
        _check(values["expires_at"], scopes)
        token, plaintext = api_token_create(
            name=values["name"],
            scopes=scopes,
            actor=principal,
            expires_at=values["expires_at"],
            request_id=request_id(),
        )
        body = {**_token_json(token), "token": plaintext}
        return json_answer(
            body, status=201, headers={"Location": path_to("tokens", str(token.pk)), "Cache-Control": "no-store"}
        )


class TokenView(ApiView):
    """One token."""

    needs = {"DELETE": Needs.ANYBODY}

    @extend_schema(
        operation_id="token_revoke",
        summary="End a token now",
        responses=described(204, None, 401, 404, 422, 503),
    )
    def delete(self, request: Request, token_id: int) -> HttpResponse:
        """Revoke it; it stays listed."""
        Query(request, ()).done()
        principal = principal_of(request)
        token = api_token_list().filter(pk=token_id).first() if token_id < 2**63 else None
        if token is None or not _administers(principal, token):
            raise NotFound(f"There is no token {token_id}.")
        api_token_revoke(token=token, actor=principal, request_id=request_id())
        return empty_answer(204)


def _administers(principal: Principal, token: ApiToken) -> bool:
    return all(principal.may(Role.ADMIN, scope["environment"]) for scope in token.scopes)


def _check(expires_at: datetime | None, scopes: tuple[Scope, ...]) -> None:
    """What a token is for must exist, and its end must be to come."""
    known = {state.key for state in environment_list()}
    unknown = [
        scope.environment for scope in scopes if scope.environment is not None and scope.environment not in known
    ]
    if unknown:
        raise InputInvalid(f"There is no environment '{unknown[0]}'. Nothing was changed.")
    if expires_at is not None and expires_at <= timezone.now():
        raise InputInvalid("expires_at is in the past. Nothing was changed.")


def _token_json(token: ApiToken) -> dict[str, object]:
    return {
        "id": token.pk,
        "name": token.name,
        "prefix": token.prefix,
        "scopes": token.scopes,
        "created_at": moment(token.created_at),
        "expires_at": moment_or_none(token.expires_at),
        "revoked_at": moment_or_none(token.revoked_at),
        "last_used_on": token.last_used_on.isoformat() if token.last_used_on is not None else None,
    }
