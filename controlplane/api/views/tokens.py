"""API tokens: an administrator of an environment makes and ends tokens for that environment; anybody ends their own."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import Role, Scope
from controlplane.accounts.selectors import id_of_user
from controlplane.accounts.services import api_token_revoke
from controlplane.accounts.token_rules import TokenKind
from controlplane.api.answers import empty_answer, json_answer, moment, moment_or_none
from controlplane.api.authentication import proof_require
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import plain_page
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.people import TokenIn, TokenMadeOut, TokenOut
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.token_rights import api_token_allow, api_token_issue, api_token_of, api_tokens_of


class TokenListView(ApiView):
    """List API tokens and create one: tokens that the caller administers, and the caller's own."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.CHECK}
    tells_secret = frozenset({"POST"})

    def check(self, request: Request, **_kwargs: object) -> None:
        """Raise Forbidden for a scope in the body that the caller does not administer, and for a session that proved
        nothing lately; and what reading the body raises.
        """
        self.wanted = values_of(document_of(request), TokenIn)
        api_token_allow(principal_of(request), [scope["environment"] for scope in self.wanted["scopes"]])
        proof_require(request, "Making a token", "Tokens")

    @extend_schema(
        operation_id="token_list",
        summary="List the tokens you may administer, and your own, newest first",
        parameters=PAGE,
        responses=described(200, page_of(TokenOut), 401, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of API tokens: those that the caller administers, and the caller's own."""
        principal = principal_of(request)
        return json_answer(plain_page(request, api_tokens_of(principal), _token_json))

    @extend_schema(
        operation_id="token_create",
        summary="Make a token; it is shown once",
        description=(
            "Needs the role admin for every scope that the token is given. A token never outlives the one it is made "
            "with: it ends no later, and is revoked together with it. One that is made with a person's token is that "
            "person's. Names are unique among the tokens of a person, and among those of services for the same "
            "environments, as long as they are not revoked."
        ),
        request=body_of_shape(TokenIn),
        responses=described(201, TokenMadeOut, 400, 401, 403, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a token of the API; only this answer tells its plaintext."""
        Query(request, ()).done()
        principal = principal_of(request)
        values = self.wanted
        scopes = tuple(
            Scope(Role(scope["role"]), scope["environment"], (scope["limit"],) if scope["limit"] else ())
            for scope in values["scopes"]
        )
        token, plaintext = api_token_issue(
            name=values["name"],
            scopes=scopes,
            actor=principal,
            kind=TokenKind(values["kind"]) if "kind" in values else None,
            expires_at=values["expires_at"],
            request_id=request_id(),
        )
        body = {**_token_json(token), "token": plaintext}
        return json_answer(body, status=201, headers={"Location": path_to("tokens", str(token.pk))})


class TokenView(ApiView):
    """Revoke one token of the API."""

    needs = {"DELETE": Needs.ANYBODY}

    @extend_schema(
        operation_id="token_revoke",
        summary="End a token now, and every token that was made with it",
        description=(
            "A token that you may administer, or your own: those of the person who is signed in, whatever roles they "
            "have left, and the personal token that asks. It stays listed."
        ),
        responses=described(204, None, 401, 404, 422, 503),
    )
    def delete(self, request: Request, token_id: int) -> HttpResponse:
        """Revoke the token; it stays listed as revoked."""
        Query(request, ()).done()
        principal = principal_of(request)
        token = api_token_of(principal, token_id)
        api_token_revoke(token=token, actor=principal, request_id=request_id())
        return empty_answer(204)


def _token_json(token: ApiToken) -> dict[str, object]:
    return {
        "id": token.pk,
        "name": token.name,
        "prefix": token.prefix,
        "kind": token.kind,
        "owner": token.owner.get_username() if token.owner is not None else None,
        "owner_id": str(id_of_user(token.owner)) if token.owner is not None else None,
        "scopes": token.scopes,
        "created_by": token.created_by or None,
        "created_by_id": token.creator or None,
        "created_at": moment(token.created_at),
        "expires_at": moment_or_none(token.expires_at),
        "revoked_at": moment_or_none(token.revoked_at),
        "last_used_on": token.last_used_on.isoformat() if token.last_used_on is not None else None,
    }


urlpatterns = [
    path("tokens", TokenListView.as_view()),
    path("tokens/<int:token_id>", TokenView.as_view()),
]
EXAMPLES = {
    "token_create": {"name": "pipeline", "scopes": [{"role": "editor", "environment": "default"}], "expires_at": None},
}
