"""Django's `migrate`, with a home to migrate in, the patience it needs, and afterwards the guards of history and a word
on the access rules it wrote.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration

from controlplane.access.selectors import rules_of_upgrade
from controlplane.config.home import home_create
from controlplane.database.append_only import guards_ensure

_SQLITE_WAIT_S: Final = 20  # decisions C30; everything else waits 5 s
_POSTGRES_UNHURRIED: Final = "-c statement_timeout=0"  # the last setting of a name counts; lock_timeout stays (F26)


# Writes the rules that stand in the default's place.
_SECRET_RULES: Final = ("access", "0002_secret_rules")


class Command(migrate.Command):
    """Applies migrations, as Django's command does: it creates the home directory first, allows more time, and
    afterwards creates the triggers of append-only tables.
    """

    help = "Bring the database to this version of Parley: apply its migrations. Older processes may go on meanwhile."
    _wrote_rules = False

    def execute(self, *args: object, **options: object) -> str | None:
        """Create the home directory, then run the command. Django's checks, which come before the migrations, open the
        database.
        """
        home_create(settings.PARLEY)
        with _patient(connections[str(options["database"])]):
            output: str | None = super().execute(*args, **options)
            if not (options.get("plan") or options.get("check_unapplied")):
                guards_ensure(connections[str(options["database"])])
        if self._wrote_rules:
            for environment, rule in rules_of_upgrade():
                self.stdout.write(
                    f"Environment '{environment}': wrote access rule {rule}, behind all others: it allows secrets to "
                    "all clients. An environment's default no longer covers secrets, and clients of this one got "
                    "theirs by it; they still do. Narrow the rule to those that need them."
                )
        return output

    def migration_progress_callback(self, action: str, migration: Migration | None = None, fake: bool = False) -> None:
        """Print how far the migration is, and remember whether the one that writes access rules for secrets was applied
        now.
        """
        super().migration_progress_callback(action, migration, fake)
        if action == "apply_success" and migration is not None:
            self._wrote_rules |= (migration.app_label, migration.name) == _SECRET_RULES


@contextmanager
def _patient(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Give the connection longer time limits until the end of the block, and the usual ones again after it. It is
    opened anew for that both times.
    """
    usual = connection.settings_dict["OPTIONS"]
    patient = dict(usual)
    if connection.vendor == "sqlite":
        patient["timeout"] = _SQLITE_WAIT_S
    else:
        patient["options"] = f"{patient['options']} {_POSTGRES_UNHURRIED}"
        patient.pop("pool", None)
    connection.close()
    connection.settings_dict["OPTIONS"] = patient
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = usual
