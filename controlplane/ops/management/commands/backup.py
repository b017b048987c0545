"""`manage.py backup FILE`: the whole database in one file, while everything serves on."""

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.ops.backups import BackupError, backup_write


class Command(BaseCommand):
    """Writes the whole database to one file."""

    help = (
        "Write the whole database to FILE, as of one moment, while everything goes on. The keys "
        "(PARLEY_ENCRYPTION_KEYS, or encryption.keys in the home) are not in it: keep them apart, and keep them safe."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="a new file; an existing one is never replaced")

    def handle(self, *_arguments: object, file: Path, **_options: object) -> None:
        try:
            size = backup_write(config=settings.PARLEY, file=file)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{file}: {size:,} bytes. The keys are not in it; keep them, too.")
