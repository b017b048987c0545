"""`manage.py rotate_keys`: seals every secret, and signs every snapshot, with the first of PARLEY_ENCRYPTION_KEYS."""

import sys
from argparse import ArgumentParser

from django.core.management.base import BaseCommand
from django.db import transaction

from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.key_marks import key_marks_settle
from controlplane.catalog.lasting import lasting_keys_keep
from controlplane.catalog.services import secrets_reseal
from controlplane.factors.sealing import secrets_reseal as app_secrets_reseal
from controlplane.journal.services import audit_record
from controlplane.notify.sealing import secrets_reseal as channel_secrets_reseal
from controlplane.oidc.sealing import tokens_reseal
from controlplane.snapshots.rotation import snapshots_resign

EXIT_LEFT_BEHIND = 1

_ADD = "Add the key they were made with and run this again; if it is lost for good, run it with --give-up-lost."


class Command(BaseCommand):
    """Encrypts and signs everything that is stored with the newest key. Parley goes on serving, and the command may be
    run again at any time.
    """

    help = (
        "Seal every secret and sign every snapshot with the first key of PARLEY_ENCRYPTION_KEYS, while everything "
        "serves on. Put a new key first, restart every process, run this, then drop the old key and restart again."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--give-up-lost",
            action="store_true",
            help="the keys that are missing are lost for good: what is under them must be written again",
        )

    def handle(self, *_arguments: object, give_up_lost: bool, **_options: object) -> None:
        secrets = secrets_reseal()
        channels = channel_secrets_reseal()
        apps = app_secrets_reseal()
        tokens = tokens_reseal()
        snapshots = snapshots_resign()
        lasting = lasting_keys_keep()
        detail = {
            "secrets": secrets.moved,
            "channels": channels.moved,
            "authenticator apps": apps.moved,
            "sign-ins": tokens.moved,
            "snapshots": snapshots.moved,
        }
        complete = not (secrets.lost or channels.lost or apps.lost or snapshots.lost) and lasting
        with transaction.atomic():
            if complete or give_up_lost:
                key_marks_settle()
            audit_record(actor=SYSTEM, verb="keys.rotated", subject="PARLEY_ENCRYPTION_KEYS", detail=detail)
        self.stdout.write(
            f"Sealed anew: {secrets.moved} secrets, {channels.moved} secrets of channels, "
            f"{apps.moved} secrets of authenticator apps, {tokens.moved} sign-ins. "
            f"Signed anew: {snapshots.moved} snapshots."
        )
        if not complete:
            self.stderr.write(
                f"Left behind, because no key of PARLEY_ENCRYPTION_KEYS fits: {len(secrets.lost)} secrets, "
                f"{len(channels.lost)} secrets of channels, {len(apps.lost)} secrets of authenticator apps, "
                f"{snapshots.lost} snapshots"
                f"{'' if lasting else ', the keys that last'}. {'Write them again.' if give_up_lost else _ADD}"
            )
            sys.exit(EXIT_LEFT_BEHIND)
        self.stdout.write("Everything is under the first key: the others may be dropped.")
