"""`manage.py restore FILE`: makes the database what a backup says; or, without a file, tells replicas that it went
back.
"""

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.services import lineages_renew
from controlplane.config.home import home_create
from controlplane.ops.backups import BackupError, backup_restore
from controlplane.ops.keys import foreign_keys_sentence


class Command(BaseCommand):
    """Restores a backup."""

    help = (
        "Make the database what FILE, a backup, says: its tables are brought up to date and everything is published "
        "anew. Stop web and workers first; with SQLite everything. Data planes keep what they have meanwhile. "
        "A backup of SQLite goes into an empty PostgreSQL, too, and is compared there. "
        "Without FILE: the database was put back by other means; publish everything anew."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="what `manage.py backup` wrote")

    def handle(self, *_arguments: object, file: Path | None, **_options: object) -> None:
        home_create(settings.PARLEY)
        if file is None:
            keys = lineages_renew(actor=SYSTEM, reason="the database was restored")
            self.stdout.write(f"Will be published anew: {', '.join(keys) or 'nothing'}.")
            if sentence := foreign_keys_sentence():
                raise CommandError(sentence)
            return
        try:
            foreign = backup_restore(config=settings.PARLEY, file=file, say=self._say)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"The database is what {file} says. Start everything: each environment is published anew.")
        sentence = foreign_keys_sentence()
        if foreign or sentence:
            where = f" of {', '.join(foreign)}" if foreign else ""
            raise CommandError(f"But keys{where} are missing; start nothing before they are there. {sentence}".rstrip())

    def _say(self, line: str) -> None:
        """Print a line at once: a large installation takes minutes."""
        self.stdout.write(line)
        self.stdout.flush()
