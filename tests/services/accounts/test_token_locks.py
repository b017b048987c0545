"""Tokens and roles are made and ended at the same moment: all take the person before the environments, and those before
the tokens, so that none outlives what it belongs to and neither fails.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, connections, transaction

from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.accounts.selectors import token_principal, user_principal
from controlplane.accounts.services import api_token_create, environment_forget, person_tokens_revoke
from controlplane.accounts.token_rules import TokenKind
from controlplane.catalog.models import Environment
from controlplane.catalog.role_rights import role_grant
from controlplane.catalog.services import environment_create, environment_lock
from controlplane.catalog.token_rights import api_token_issue, client_token_issue
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.common.errors import Forbidden, InputInvalid
from controlplane.database.append_only import maintenance

USERS: Any = get_user_model()
pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)  # SQLite has one writer at a time


def somebody_waits() -> None:
    """Return once somebody waits for a lock."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_token__made_with_a_persons_while_that_person_is_turned_off__is_refused_and_all_tokens_end(
    database: str,
) -> None:
    paula = USERS.objects.create_superuser("paula")
    _token, text = api_token_create(name="a", scopes=ADMIN_SCOPES, actor=user_principal(paula) or SYSTEM)
    bearer = token_principal(text)
    assert bearer is not None

    def make() -> None:
        try:
            api_token_create(name="b", scopes=ADMIN_SCOPES, actor=bearer)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            USERS.objects.filter(pk=paula.pk).update(is_active=False)
            making = threads.submit(make)
            somebody_waits()
            person_tokens_revoke(user=paula, actor=SYSTEM)
        with pytest.raises(Forbidden, match="turned off meanwhile"):
            making.result()

    assert [(token.name, token.revoked_at is None) for token in ApiToken.objects.all()] == [("a", False)]


def test_tokens__of_a_person_who_is_being_deleted__wait_for_the_person_first(database: str) -> None:
    paula = USERS.objects.create_superuser("paula")
    token, _text = api_token_create(name="a", scopes=ADMIN_SCOPES, actor=user_principal(paula) or SYSTEM)

    def end() -> None:
        try:
            person_tokens_revoke(user=paula, actor=SYSTEM)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            USERS.objects.select_for_update().get(pk=paula.pk)
            ending = threads.submit(end)
            somebody_waits()
            ApiToken.objects.select_for_update(nowait=True).get(pk=token.pk)
        ending.result()

    assert ApiToken.objects.get(pk=token.pk).revoked_at is not None


GRANTS: dict[str, Callable[[], object]] = {
    "api token": lambda: api_token_issue(
        name="ci",
        scopes=[Scope(Role.EDITOR, "prod")],
        actor=SYSTEM,
        kind=TokenKind.SERVICE,
        expires_at=None,
        request_id="",
    ),
    "client token": lambda: client_token_issue(
        subject="pay", environment="prod", actor=SYSTEM, expires_at=None, request_id=""
    ),
    "role": lambda: role_grant(
        user_id=USERS.objects.get(username="paula").pk,
        role=Role.VIEWER,
        environment="prod",
        actor=SYSTEM,
        by_superuser=True,
        reason="she asked",
    ),
}


def granted() -> tuple[int, int, int]:
    """How many grants there are that are still good."""
    api, client = (model.objects.filter(revoked_at=None).count() for model in (ApiToken, ClientToken))
    return api, client, RoleGrant.objects.count()


@pytest.mark.parametrize("grant", GRANTS)
def test_grant__in_an_environment_that_is_being_deleted__waits_and_is_refused(database: str, grant: str) -> None:
    USERS.objects.create_user("paula")
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)

    def make() -> None:
        try:
            GRANTS[grant]()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            environment_lock(key="prod")
            making = threads.submit(make)
            somebody_waits()
            with maintenance():
                Environment.objects.get(key="prod").delete()
            environment_forget(environment="prod", actor=SYSTEM)
        with pytest.raises(InputInvalid, match="There is no environment 'prod'"):
            making.result()

    assert granted() == (0, 0, 0)


def test_token__made_with_a_persons_while_its_environment_is_deleted__ends_with_it_and_in_no_deadlock(
    database: str,
) -> None:
    paula = USERS.objects.create_superuser("paula")
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    scopes = (Scope(Role.ADMIN, "prod"),)
    _token, text = api_token_create(name="a", scopes=scopes, actor=user_principal(paula) or SYSTEM)
    bearer = token_principal(text)
    assert bearer is not None

    def make() -> None:
        try:
            api_token_issue(name="b", scopes=scopes, actor=bearer, kind=None, expires_at=None, request_id="")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            environment_lock(key="prod")
            making = threads.submit(make)
            somebody_waits()
            environment_forget(environment="prod", actor=SYSTEM)  # takes the maker's lock
        with pytest.raises(Forbidden, match="revoked meanwhile"):
            making.result()

    assert [(token.name, token.revoked_at is None) for token in ApiToken.objects.all()] == [("a", False)]
