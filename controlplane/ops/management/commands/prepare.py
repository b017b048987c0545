"""`manage.py prepare`: tables, first administrator, tokens, the default environment; repeatable. Part of `up`."""

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from controlplane.home import home_create
from controlplane.ops.installation import installation_prepare

EXIT_CANNOT_START = 2


class Command(BaseCommand):
    """Prepares home and database."""

    help = "Make home and database ready: migrate, first administrator, token files, default environment."
    requires_system_checks = []  # they belong to `make check`; a start must be quick

    def handle(self, *_arguments: object, **_options: object) -> None:
        config = settings.PARLEY
        home = home_create(config)
        try:
            installation_prepare(config=config, home=home)
        except DatabaseError as error:
            where = "DATABASE_URL" if config.database else f"PARLEY_HOME {config.home}"
            self.stderr.write(f"{where}: the database cannot be used: {_first_line(error)}.")
            raise SystemExit(EXIT_CANNOT_START) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
