"""`manage.py invite`: a link by which somebody comes in, for whoever has a shell and no browser."""

from argparse import ArgumentParser
from typing import Final

from django.core.management.base import BaseCommand, CommandError

from controlplane.accounts.principal import SYSTEM
from controlplane.common.errors import ControlPlaneError
from controlplane.common.roles import Role
from controlplane.invitations.letters import link_of
from controlplane.invitations.services import invitation_make
from controlplane.invitations.values import DEFAULT_DAYS, MAX_DAYS, Given

_ROLES: Final = {role.value: role for role in Role}


class Command(BaseCommand):
    """Makes an invitation in the name of Parley itself, and prints its link, once. No mail is sent."""

    help = "Invite somebody to the console: print a link that makes an account, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The arguments of the command."""
        parser.add_argument("name", help="The user name that they get.")
        parser.add_argument(
            "--role",
            action="append",
            required=True,
            metavar="ROLE[@ENVIRONMENT]",
            help=f"What they may: {', '.join(_ROLES)}; without an environment in all of them. May be repeated.",
        )
        parser.add_argument(
            "--days", type=int, default=DEFAULT_DAYS, help=f"How long the link lasts: 1 to {MAX_DAYS}; {DEFAULT_DAYS}."
        )
        parser.add_argument("--reason", default="manage.py invite", help="Stands in the audit log.")

    def handle(self, *_arguments: object, **options: object) -> None:
        """Make the invitation. Raises CommandError with everything that is wrong."""
        try:
            row, token = invitation_make(
                username=str(options["name"]),
                address="",
                roles=[_given(text) for text in options["role"]],  # type: ignore[attr-defined]  # argparse's list
                days=int(str(options["days"])),
                actor=SYSTEM,
                reason=str(options["reason"])[:400],
            )
        except ControlPlaneError as error:
            raise CommandError(error.detail) from None
        self.stdout.write(link_of(token))
        self.stderr.write(f"Good once, until {row.expires_at:%Y-%m-%d %H:%M} UTC. It is shown this once.")


def _given(text: str) -> Given:
    """The role in the form ROLE or ROLE@ENVIRONMENT. Raises CommandError."""
    word, _, environment = text.partition("@")
    if word not in _ROLES:
        raise CommandError(f"'{word}' is no role; there are {', '.join(_ROLES)}.")
    return Given(_ROLES[word], environment)
