"""`manage.py up`, as Django lists it. manage.py itself goes to the supervisor directly, without loading Django."""

from argparse import REMAINDER, ArgumentParser

from django.core.management.base import BaseCommand

from controlplane.ops.supervisor.__main__ import UP_HELP, main


class Command(BaseCommand):
    """Runs the supervisor, which starts the whole of Parley on this machine."""

    help = UP_HELP
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("arguments", nargs=REMAINDER)

    def handle(self, *_arguments: object, arguments: list[str], **_options: object) -> None:
        raise SystemExit(main(arguments))
