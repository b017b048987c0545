"""The upgrade to where tokens have owners: what was made before is a service's; what is called alike is told apart."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, INSTALLATION
from controlplane.accounts.selectors import token_principal
from controlplane.accounts.services import admin_token_ensure
from controlplane.accounts.token_text import token_digest
from controlplane.journal.models import KeptAnswer

pytestmark = pytest.mark.django_db(transaction=True)
USERS: Any = get_user_model()
BEFORE = [("accounts", "0004_reporter_role"), ("journal", "0003_domainevent")]
EVERYTHING = [{"role": scope.role.value, "environment": None} for scope in ADMIN_SCOPES]


@pytest.fixture
def before(database: str) -> Any:
    """The tables as they were, and their models of then."""
    for app, migration in BEFORE:
        call_command("migrate", app, migration, verbosity=0, interactive=False)
    return MigrationExecutor(connection).loader.project_state(BEFORE).apps


def test_upgrade__tokens_of_before__are_services_that_still_work_under_names_that_differ(before: Any) -> None:
    old = before.get_model("accounts", "ApiToken")
    paula = USERS.objects.create_user("paula")
    here, there = ([{"role": "viewer", "environment": key}] for key in ("default", "prod"))
    ended = {"revoked_at": "2026-01-01T00:00:00Z"}

    def make(number: int, name: str, scopes: list[Any], **more: Any) -> None:
        old.objects.create(name=name, prefix=f"p{number}", digest=token_digest(f"t{number}"), scopes=scopes, **more)

    make(1, "ci", here)
    make(2, "ci", here)
    make(3, "ci (2)", here)
    make(4, "ci", there)
    make(5, "ci", here, **ended)
    make(6, "x" * 143, there)
    make(7, "x" * 143, there)
    make(8, "ci", here, owner_id=paula.pk)
    make(9, "admin.token", EVERYTHING)
    before.get_model("journal", "KeptAnswer").objects.create(actor="token:ci", key="k", digest="d", body=b"parley_x")

    call_command("migrate", verbosity=0, interactive=False)

    rows = ApiToken.objects.order_by("pk")
    assert list(rows.values_list("name", "kind", "owner__username")) == [
        ("ci", "service", None),
        ("ci (2)", "service", None),
        ("ci (2) (2)", "service", None),
        ("ci", "service", None),
        ("ci", "service", None),
        ("x" * 143, "service", None),
        ("x" * 139 + " (2)", "service", None),
        ("ci", "personal", "paula"),
        ("admin.token", "service", None),
    ]
    assert [token_principal(f"t{number}") is not None for number in range(1, 10)] == [True] * 4 + [False] + [True] * 4
    assert not KeptAnswer.objects.exists()
    # Whoever has the file says which token is the installation's; it stays as it is.
    assert admin_token_ensure(known="t9") == "t9"
    assert token_principal("t9") == INSTALLATION
    assert admin_token_ensure(known="t9") == "t9"
