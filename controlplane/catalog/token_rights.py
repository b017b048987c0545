"""Who may make, see and end which tokens: the rule that REST and the pages share.

An administrator of an environment makes and ends the tokens of that environment, and no others. What is one's own one
sees and ends without any role: whoever lost their rights, or a token, can still put an end to it. A data plane's token
that is good in any environment is for administrators of all: who may choose the subject freely could otherwise become a
client of somebody else's environment (decisions U6).
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.accounts.models import ApiToken, ClientToken
from controlplane.accounts.principal import Principal, Role, Scope
from controlplane.accounts.selectors import api_token_list, client_token_list
from controlplane.accounts.services import api_token_create, client_token_create, person_behind_lock
from controlplane.accounts.token_rules import TokenKind, expiry_problem
from controlplane.catalog.selectors import environment_list
from controlplane.catalog.services.environments import environments_stay
from controlplane.common.errors import Forbidden, InputInvalid, NotFound
from controlplane.common.limits import limit_problem
from controlplane.common.principal_ids import PrincipalKind
from xdscore.codes import shown
from xdscore.environment_choice import DEFAULT_ENVIRONMENT, ClientFacts, EnvironmentChoice, choose_environment
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import VALUE_REFUSED

_MAX_ID = 2**63


def api_tokens_of(principal: Principal) -> QuerySet[ApiToken]:
    """The API tokens that belong to the principal, and those whose scopes the principal administers; newest first."""
    tokens = api_token_list()
    if principal.may(Role.ADMIN, None):
        return tokens
    return tokens.filter(
        pk__in=[
            token.pk
            for token in api_token_list().select_related(None).only("pk", "scopes", "owner_id")
            if _administers(principal, token) or _owns(principal, token)
        ]
    )


def api_token_of(principal: Principal, token_id: int) -> ApiToken:
    """The API token with this id. Raises NotFound, with one text, where it does not exist and where the principal may
    not see it.
    """
    token = api_token_list().filter(pk=token_id).first() if token_id < _MAX_ID else None
    if token is None or not (_administers(principal, token) or _owns(principal, token)):
        raise NotFound(f"There is no token {token_id}.")
    return token


@transaction.atomic
def api_token_issue(
    *,
    name: str,
    scopes: Sequence[Scope],
    actor: Principal,
    kind: TokenKind | None,
    expires_at: datetime | None,
    request_id: str,
) -> tuple[ApiToken, str]:
    """Create an API token; returns its row and its plaintext. Raises Forbidden for a scope that the actor does not
    administer, InputInvalid for an environment that does not exist, an `expires_at` in the past or a role that cannot
    be limited, and what `api_token_create` raises.
    """
    api_token_allow(actor, [scope.environment for scope in scopes])
    problems = [limit_problem(scope.role, limit) for scope in scopes for limit in scope.limits]
    if any(problems):
        raise InputInvalid(f"{' '.join(dict.fromkeys(filter(None, problems)))} Nothing was changed.")
    _expiry_check(expires_at)
    person_behind_lock(actor)
    environments_stay(keys=[scope.environment for scope in scopes if scope.environment is not None])
    return api_token_create(
        name=name, scopes=scopes, actor=actor, kind=kind, expires_at=expires_at, request_id=request_id
    )


def api_token_allow(actor: Principal, environments: Iterable[str | None]) -> None:
    """Raise Forbidden unless the actor may make tokens for each of these environments (None stands for all
    environments).
    """
    for key in environments:
        if not actor.may(Role.ADMIN, key):
            where = f"environment '{key}'" if key is not None else "all environments"
            raise Forbidden(f"A token for {where} needs the role admin there; {actor.name} does not have it.")


def client_tokens_of(principal: Principal) -> QuerySet[ClientToken]:
    """The tokens of data planes whose environment the principal administers, newest first."""
    tokens = client_token_list()
    if principal.may(Role.ADMIN, None):
        return tokens
    keys = [state.key for state in environment_list() if principal.may(Role.ADMIN, state.key)]
    return tokens.filter(environment__in=keys)


def client_token_of(principal: Principal, token_id: int) -> ClientToken:
    """The data plane's token with this id. Raises NotFound, with one text, where it does not exist and where the
    principal may not see it.
    """
    token = client_token_list().filter(pk=token_id).first() if token_id < _MAX_ID else None
    if token is None or not principal.may(Role.ADMIN, token.environment or None):
        raise NotFound(f"There is no client token {token_id}.")
    return token


@transaction.atomic
def client_token_issue(
    *, subject: str, environment: str, actor: Principal, expires_at: datetime | None, request_id: str
) -> tuple[ClientToken, str]:
    """Create a token of a data plane; returns its row and its plaintext. `subject`: the identity that it proves.
    `environment`: the only one in which it is good; empty: any. Raises what `api_token_issue` raises, and InputInvalid
    where selectors lead the subject to another environment, because ADS would refuse every client with the token.
    """
    client_token_allow(actor, environment)
    _expiry_check(expires_at)
    person_behind_lock(actor)
    environments_stay(keys=[environment] if environment else [])
    _leads_check(subject, environment)
    return client_token_create(
        subject=subject, environment=environment, actor=actor, expires_at=expires_at, request_id=request_id
    )


def client_token_allow(actor: Principal, environment: str) -> None:
    """Raise Forbidden unless the actor may make tokens of data planes for this environment (empty stands for all)."""
    if not actor.may(Role.ADMIN, environment or None):
        where = f"environment '{environment}'" if environment else "any environment"
        raise Forbidden(f"A token for {where} needs the role admin there; {actor.name} does not have it.")


def environment_choices() -> tuple[EnvironmentChoice, ...]:
    """All environments, in the form in which ADS chooses a client's environment among them."""
    return tuple(state.choice for state in environment_list())


def client_token_usable(token: ClientToken, choices: tuple[EnvironmentChoice, ...]) -> bool:
    """Whether the token has not expired, and selectors lead its subject to the token's environment. `choices`: all
    environments.
    """
    ended = token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= timezone.now())
    leads_to = choose_environment(ClientFacts(identity=token.subject), choices)
    return not ended and token.environment in {"", leads_to}


def client_token_warnings(token: ClientToken, choices: tuple[EnvironmentChoice, ...]) -> tuple[str, ...]:
    """Sentences that say which node ids a client has to use to be let in with this token. Empty where any will do, and
    where `client_token_usable` is False. `choices`: all environments.
    """
    facts = ClientFacts(identity=token.subject)
    leads_to = choose_environment(facts, choices)
    node_ids = next((each.node_ids_of(facts) for each in choices if each.key == leads_to), ())
    if not node_ids or token.environment not in {"", leads_to}:
        return ()
    wanted = " or ".join(f"'{pattern}'" for pattern in node_ids)
    return (f"'{leads_to}' takes it from nodes alone whose id is like {shown(wanted)} (node_ids of the environment).",)


def _leads_check(subject: str, environment: str) -> None:
    """Raise InputInvalid unless selectors lead a client with this verified identity to the environment. Known
    beforehand, because selectors look at nothing else of a client whose identity is verified (decisions C15).
    """
    facts, choices = ClientFacts(identity=subject), environment_choices()
    if not environment or choose_environment(facts, choices) == environment:
        return
    selectors = next((each.selectors for each in choices if each.key == environment), ())
    if any(selector.matches(facts) for selector in selectors):
        # Which one that is may be somebody else's affair.
        why = "an environment that is tried before it takes this subject"
        hint = "Name another subject."
    elif environment == DEFAULT_ENVIRONMENT:
        why = "a selector of another environment takes this subject"
        hint = "Make the token for that environment, or name another subject."
    else:
        why = "none of its selectors takes this identity"
        if any(selector.declares for selector in selectors):
            why += "; those that look at node_id, node_cluster or metadata take nobody whose identity is verified"
        hint = f"Give '{environment}' a selector for it first, such as {json.dumps({'identity': subject})}."
    detail = f"ADS would refuse a token of '{environment}' for '{subject}': {why}."
    finding = Finding(VALUE_REFUSED.code, Severity.ERROR, detail, hint, pointer="/environment")
    raise InputInvalid("A token that lets nobody in is not made. Nothing was changed.", findings=(finding,))


def _administers(principal: Principal, token: ApiToken) -> bool:
    return all(principal.may(Role.ADMIN, scope["environment"]) for scope in token.scopes)


def _owns(principal: Principal, token: ApiToken) -> bool:
    """Whether the token belongs to the principal: to the person who is signed in, or it is the very token by which a
    program asks. A program with one token of a person has no rights over the person's others.
    """
    if principal.id.kind is PrincipalKind.USER:
        return token.owner_id == principal.id.number
    return principal.id.kind is PrincipalKind.TOKEN and token.owner_id is not None and token.pk == principal.id.number


def _expiry_check(expires_at: datetime | None) -> None:
    if problem := expiry_problem(expires_at, now=timezone.now()):
        raise InputInvalid(f"{problem} Nothing was changed.")
