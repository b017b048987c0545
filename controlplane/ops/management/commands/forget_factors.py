"""`manage.py forget_factors NAME`: removes the second factors of somebody whom no administrator can help any more."""

from argparse import ArgumentParser

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.principal import SYSTEM
from controlplane.common.errors import ControlPlaneError
from controlplane.factors.services import forget


class Command(BaseCommand):
    """Removes every second factor of a person, and ends their sessions."""

    help = (
        "Remove the second factors of a person who lost theirs, recovery codes too, and end their sessions: the "
        "password alone signs them in then. For the last administrator; others are helped on the page Users."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the user name")
        parser.add_argument("--reason", required=True, help="why; stands in the audit log")

    def handle(self, *_arguments: object, name: str, reason: str, **_options: object) -> None:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user '{name}'. Nothing was changed.")
        try:
            ended = forget(user, actor=SYSTEM, reason=reason)
        except ControlPlaneError as error:
            raise CommandError(error.detail) from None
        self.stdout.write(f"{name} has no second factor any more; {ended} of their sessions ended.")
