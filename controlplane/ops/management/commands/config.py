"""`manage.py config`: every variable with the value in force, without secrets, and what it is for."""

import json
import os
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path

from django.core.management.base import BaseCommand

from controlplane.config.loading import in_force, unknown
from controlplane.config.variables import Variable
from xdscore.limits import LIMITS


class Command(BaseCommand):
    """Prints what this process was configured with."""

    help = "Print every variable: the value in force (secrets are hidden), whether it is the default, what it is for."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", choices=("text", "json"), default="text", help="text for people, or json")

    def handle(self, *_arguments: object, **options: object) -> None:
        variables = in_force(os.environ, directory=Path.cwd())
        for sentence in unknown(os.environ, variables):
            self.stderr.write(sentence)
        if options["format"] == "json":
            rows = [asdict(each) | {"is_default": each.is_default} for each in variables]
            self.stdout.write(json.dumps(rows, indent=2))
            return
        bounds = {limit.variable: f" {limit.minimum} to {limit.maximum} {limit.unit}." for limit in LIMITS}
        for each in variables:
            self.stdout.write(f"{each.name}={_shown(each)}\n    {each.meaning}{bounds.get(each.name, '')}")


def _shown(variable: Variable) -> str:
    if variable.hidden:
        return "(set, hidden)"
    if variable.is_default:
        return f"{variable.value}  (default)" if variable.value else "  (unset)"
    return f"{variable.value}  (default: {variable.default or 'unset'})"
