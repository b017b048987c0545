"""`manage.py prepare`: tables, first administrator, tokens, the default environment; repeatable. Part of `up`."""

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from controlplane.catalog.key_marks import KeysForeign
from controlplane.config.home import Home, home_create
from controlplane.ops.installation import Prepared, installation_prepare
from controlplane.ops.keys import foreign_keys_sentence

EXIT_CANNOT_START = 2


class Command(BaseCommand):
    """Prepares the home directory and the database, so that Parley can run."""

    help = "Make home and database ready: migrate, first administrator, token files, default environment."
    requires_system_checks = []  # they belong to `make check`; a start must be quick

    def handle(self, *_arguments: object, **options: object) -> None:
        config = settings.PARLEY
        home = home_create(config)
        try:
            done = installation_prepare(config=config, home=home)
        except DatabaseError as error:
            where = "DATABASE_URL" if config.database else f"PARLEY_HOME {config.home}"
            self.stderr.write(f"{where}: the database cannot be used: {_first_line(error)}.")
            raise SystemExit(EXIT_CANNOT_START) from error
        except KeysForeign as error:
            self.stderr.write(f"{error.detail}\n{foreign_keys_sentence()}".rstrip())
            raise SystemExit(EXIT_CANNOT_START) from error
        if options["verbosity"]:
            self.stdout.write("\n".join(report(done, home)))
        if done.untaken:
            self.stderr.write("\n  ".join(["PARLEY_SCHEMA: not all of it was taken:", *done.untaken]))
        if sentence := foreign_keys_sentence():
            self.stderr.write(sentence)


def report(done: Prepared, home: Home) -> list[str]:
    """The lines that tell what was done and in which files a person finds password and tokens, never a secret
    itself.
    """
    lines = [f"Database: {done.migrations} migrations applied." if done.migrations else "Database: up to date."]
    if done.administrator:
        given = str(home.admin_password) if home.admin_password in done.files else "that of PARLEY_ADMIN_PASSWORD"
        lines.append(f"Administrator: 'admin' made; password: {given}.")
    for what, file in (("API token, every scope", home.admin_token), ("Token of data planes", home.client_token)):
        if file.exists():
            lines.append(f"{what}: {file} ({'made now' if file in done.files else 'was there'}).")
    lines += [f"Schema: {name} is added." for name in done.sets]
    return [*lines, "Environment: 'default' is there."]


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
