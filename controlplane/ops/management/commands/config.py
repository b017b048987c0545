"""`manage.py config`: the configuration in force, without its secrets, and every limit with its bounds."""

from dataclasses import fields, is_dataclass

from django.conf import settings
from django.core.management.base import BaseCommand

from xdscore.limits import LIMITS


class Command(BaseCommand):
    """Prints what this process was configured with."""

    help = "Print the configuration in force, without secrets, and the limits with their bounds."
    requires_system_checks = []

    def handle(self, *_arguments: object, **_options: object) -> None:
        config = settings.PARLEY
        for each in fields(config):
            if each.name != "limits":
                value = getattr(config, each.name)
                shown = _shown(value) if each.repr else _hidden(value)
                self.stdout.write(f"{each.name:<18} {shown}")
        self.stdout.write("")
        for limit in LIMITS:
            value = getattr(config.limits, limit.name)
            bounds = f"{limit.minimum:,} to {limit.maximum:,}"
            mark = "" if value == limit.default else f" (default {limit.default:,})"
            self.stdout.write(f"{limit.variable:<44} {value:>12,} {limit.unit:<12}{mark} {bounds}: {limit.meaning}")


def _shown(value: object) -> str:
    if value is None or value in ("", ()):
        return "-"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return repr(value) if is_dataclass(value) and type(value).__str__ is object.__str__ else str(value)


def _hidden(value: object) -> str:
    return "(set, hidden)" if value else "-"
