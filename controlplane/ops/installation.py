"""Makes an installation ready to run: tables, the first administrator, a token for pipelines, the default environment,
and, where data planes show tokens, the first of those.

Each step is done once and may be repeated; what a person changed afterwards stays.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.accounts.services import admin_token_ensure, administrator_ensure, client_token_ensure
from controlplane.catalog.key_marks import keys_permit
from controlplane.catalog.services import environment_default_ensure
from controlplane.config.home import Home, private_create, private_replace
from controlplane.config.loading import Config

CLIENT_SUBJECT: Final = "client"
"""The subject of the token in `client.token`: the identity of every data plane that shows it."""
_PASSWORD_BYTES: Final = 18  # 24 characters


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of one preparation: what it did; what it does not name was done already."""

    migrations: int
    administrator: bool
    files: tuple[Path, ...]


def installation_prepare(*, config: Config, home: Home) -> Prepared:
    """Bring database and files of this home up to date. Raises django.db.DatabaseError when that is impossible, and
    KeysForeign when the keys of this process open nothing of what is stored.
    """
    migrations = _migrate()
    keys_permit()
    files: list[Path] = []
    administrator = not get_user_model().objects.filter(is_superuser=True).exists()
    if administrator:
        administrator_ensure(password=config.admin_password or _generated_password(home))
        files += [] if config.admin_password else [home.admin_password]
    if _token_ensure(home.admin_token, lambda known: admin_token_ensure(known=known)):
        files.append(home.admin_token)
    # Without one nobody could connect, and gRPC's clients want it in a file (gRFC A97).
    if config.ads_auth.facts.tokens and _token_ensure(
        home.client_token, lambda known: client_token_ensure(known=known, subject=CLIENT_SUBJECT)
    ):
        files.append(home.client_token)
    environment_default_ensure()
    return Prepared(migrations, administrator, tuple(files))


def _token_ensure(file: Path, ensure: Callable[[str], str]) -> bool:
    """Write a valid token to the file unless it holds one; whether the file was written."""
    known = _content(file)
    token = ensure(known)
    if token == known:
        return False
    private_replace(file, token)
    return True


def _migrate() -> int:
    """Apply the migrations that are missing; how many were applied."""
    # Looking is fast; the command itself takes a while even when there is nothing to do.
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", interactive=False, verbosity=0)
    return len(plan)


def _generated_password(home: Home) -> str:
    """A new password, in its file before it is anywhere else: an administrator whose password nobody can read would be
    of no use.
    """
    private_create(home.admin_password, secrets.token_urlsafe(_PASSWORD_BYTES))
    return _content(home.admin_password)


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
