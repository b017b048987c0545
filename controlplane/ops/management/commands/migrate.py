"""Django's `migrate`, with a home to migrate in, the patience it needs, and afterwards the guards of history."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from controlplane.append_only import guards_ensure
from controlplane.home import home_create

_SQLITE_WAIT_S: Final = 20  # resolutions C30; everything else waits 5 s
_POSTGRES_UNHURRIED: Final = "-c statement_timeout=0"  # the last setting of a name counts; lock_timeout stays (F26)


class Command(migrate.Command):
    """Migrates."""

    def execute(self, *args: object, **options: object) -> str | None:
        """Before Django's checks, which open the database."""
        home_create(settings.PARLEY)
        with _patient(connections[str(options["database"])]):
            output: str | None = super().execute(*args, **options)
            if not (options.get("plan") or options.get("check_unapplied")):
                guards_ensure(connections[str(options["database"])])
        return output


@contextmanager
def _patient(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Connect anew with longer time limits, and go back to the usual ones afterwards."""
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
