"""Somebody's tokens are made and ended at the same moment: both take the person before the tokens, so neither fails."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, connections, transaction

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.selectors import token_principal, user_principal
from controlplane.accounts.services import api_token_create, person_tokens_revoke
from controlplane.errors import Forbidden

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
