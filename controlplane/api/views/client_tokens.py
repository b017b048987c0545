"""Tokens of data planes (decisions U6): the same rights as for tokens of the API, one environment each."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from controlplane.accounts.models import ClientToken
from controlplane.accounts.services import client_token_revoke
from controlplane.api.answers import empty_answer, json_answer, moment, moment_or_none
from controlplane.api.authentication import proof_require
from controlplane.api.bodies import document_of, values_of
from controlplane.api.pages import plain_page
from controlplane.api.paths import path_to
from controlplane.api.query import Query
from controlplane.api.requests import request_id
from controlplane.api.schema import PAGE, body_of_shape, described, page_of
from controlplane.api.shapes.people import ClientTokenIn, ClientTokenMadeOut, ClientTokenOut
from controlplane.api.views.base import ApiView, Needs, principal_of
from controlplane.catalog.token_rights import (
    client_token_allow,
    client_token_issue,
    client_token_of,
    client_token_usable,
    client_token_warnings,
    client_tokens_of,
    environment_choices,
)
from xdscore.environment_choice import EnvironmentChoice


class ClientTokenListView(ApiView):
    """List and create tokens of data planes, in the environments that the caller administers."""

    needs = {"GET": Needs.ANYBODY, "POST": Needs.CHECK}
    tells_secret = frozenset({"POST"})

    def check(self, request: Request, **_kwargs: object) -> None:
        """Raise Forbidden unless the caller administers the environment that the body names (all, where it names none),
        and for a session that proved nothing lately; and what reading the body raises.
        """
        self.wanted = values_of(document_of(request), ClientTokenIn)
        client_token_allow(principal_of(request), self.wanted["environment"] or "")
        proof_require(request, "Making a token", "Tokens")

    @extend_schema(
        operation_id="client_token_list",
        summary="List the tokens of data planes you may administer, newest first",
        parameters=PAGE,
        responses=described(200, page_of(ClientTokenOut), 401, 422, 503),
    )
    def get(self, request: Request) -> HttpResponse:
        """One page of the tokens of data planes, newest first."""
        principal = principal_of(request)
        tokens, choices = client_tokens_of(principal), environment_choices()
        return json_answer(plain_page(request, tokens, lambda token: _token_json(token, choices)))

    @extend_schema(
        operation_id="client_token_create",
        summary="Make a token for data planes; it is shown once",
        description=(
            "Needs the role admin in the environment, or in all of them for a token without one. The token has the "
            "outer form of a JWT, so that gRPC clients can send it (`call_creds` of type `jwt_token_file`, which gRPC "
            "reads with `GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true` in its environment only; gRFC A97). One for "
            "an environment to which selectors do not lead the subject is refused, for ADS would refuse it, too; "
            "`warnings` say what ADS will ask for beside it. Made with "
            "a token of the API that ends, it ends no later. It stays when its maker is revoked or turned off: data "
            "planes have it."
        ),
        request=body_of_shape(ClientTokenIn),
        responses=described(201, ClientTokenMadeOut, 400, 401, 403, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a token for a data plane; only this answer tells its plaintext."""
        Query(request, ()).done()
        principal = principal_of(request)
        values = self.wanted
        token, plaintext = client_token_issue(
            subject=values["subject"],
            environment=values["environment"] or "",
            actor=principal,
            expires_at=values["expires_at"],
            request_id=request_id(),
        )
        choices = environment_choices()
        body = {
            **_token_json(token, choices),
            "token": plaintext,
            "warnings": list(client_token_warnings(token, choices)),
        }
        return json_answer(body, status=201, headers={"Location": path_to("client-tokens", str(token.pk))})


class ClientTokenView(ApiView):
    """Revoke one token of data planes."""

    needs = {"DELETE": Needs.ANYBODY}

    @extend_schema(
        operation_id="client_token_revoke",
        summary="End a data plane's token now, and its open streams within seconds",
        responses=described(204, None, 401, 404, 422, 503),
    )
    def delete(self, request: Request, token_id: int) -> HttpResponse:
        """Revoke the token; it stays listed as revoked."""
        Query(request, ()).done()
        principal = principal_of(request)
        token = client_token_of(principal, token_id)
        client_token_revoke(token=token, actor=principal, request_id=request_id())
        return empty_answer(204)


def _token_json(token: ClientToken, choices: tuple[EnvironmentChoice, ...]) -> dict[str, object]:
    return {
        "id": token.pk,
        "subject": token.subject,
        "environment": token.environment or None,
        "hint": token.hint,
        "usable": client_token_usable(token, choices),
        "created_by": token.created_by,
        "created_by_id": token.creator or None,
        "created_at": moment(token.created_at),
        "expires_at": moment_or_none(token.expires_at),
        "revoked_at": moment_or_none(token.revoked_at),
    }


urlpatterns = [
    path("client-tokens", ClientTokenListView.as_view()),
    path("client-tokens/<int:token_id>", ClientTokenView.as_view()),
]
EXAMPLES = {
    "client_token_create": {"subject": "payments-checkout", "environment": "default"},
}
