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

from controlplane.accounts.principal import SYSTEM
from controlplane.accounts.services import admin_token_ensure, administrator_ensure, client_token_ensure
from controlplane.catalog.key_marks import keys_permit
from controlplane.catalog.services import environment_default_ensure
from controlplane.config.home import Home, private_create, private_replace
from controlplane.config.loading import Config
from controlplane.schemas.files import sets_ensure

CLIENT_SUBJECT: Final = "client"
"""The subject of the token in `client.token`: the identity of every data plane that shows it."""
_PASSWORD_BYTES: Final = 18  # 24 characters


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of preparing an installation.

    `migrations`: how many were applied.
    `administrator`: whether the first administrator was created.
    `files`: the files that were written.
    `sets`: the names of the sets of descriptors that were added; `untaken`: what is wrong with others, a sentence each.
    """

    migrations: int
    administrator: bool
    files: tuple[Path, ...]
    sets: tuple[str, ...] = ()
    untaken: tuple[str, ...] = ()


def installation_prepare(*, config: Config, home: Home) -> Prepared:
    """Bring the database and the files of the home directory up to date. Raises django.db.DatabaseError when that is
    impossible, and KeysForeign when the configured keys cannot decrypt what is stored.
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
    # What is wrong with a set keeps nothing from starting: what was there before is read by.
    sets, untaken = sets_ensure(config.schema, SYSTEM) if config.schema is not None else ((), ())
    return Prepared(migrations, administrator, tuple(files), sets, untaken)


def _token_ensure(file: Path, ensure: Callable[[str], str]) -> bool:
    """Make sure that the file holds a valid token. `ensure` is given the text in it and returns a valid one. Returns
    whether the file was written.
    """
    known = _content(file)
    token = ensure(known)
    if token == known:
        return False
    private_replace(file, token)
    return True


def _migrate() -> int:
    """Apply the migrations that are missing; returns how many there were."""
    # Looking is fast; the command itself takes a while even when there is nothing to do.
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", interactive=False, verbosity=0)
    return len(plan)


def _generated_password(home: Home) -> str:
    """Make a new password and write it to its file in the home. The file comes first, because nobody could use an
    administrator whose password is written nowhere.
    """
    private_create(home.admin_password, secrets.token_urlsafe(_PASSWORD_BYTES))
    return _content(home.admin_password)


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
