"""Says in the log how each change ended: how many clients were sent it, and what they answered (`settling`).

The last line of a change's way, once for each. It is asked of a change once what clients answered at once is stored,
then every second, and later every few seconds; of so many of an environment at once, while the next ones wait.
"""

import logging
from datetime import timedelta
from typing import Final

import structlog
from django.db.models import F, Q

from controlplane.builder.selectors import ChangeState, progress_of_changes
from controlplane.catalog.change_names import ChangeName, named_fields
from controlplane.catalog.models import Change, Environment
from controlplane.clients.clock import database_now
from controlplane.incidents.changes_read import ChangesRead
from controlplane.incidents.models import SettledMark
from controlplane.incidents.settling import ChangeReading

log = structlog.get_logger(__name__)

# How many changes of an environment are looked at, and how far back one looks that was never told of.
_OPEN_MAX: Final = 150
_READ_TOGETHER: Final = 20  # what one import wrote may be 10,000 revisions, which are held meanwhile
# Nobody waits for these any more: they were written while no worker ran, or faster than they are told, or some ADS
# process does not take them.
_TOLD_WITHIN: Final = timedelta(minutes=5)
# An answer is stored within a second, and the digest comes each second.
_NOT_BEFORE: Final = timedelta(seconds=1.5)
_AT_FIRST_S: Final = 4
_LATER_EVERY_S: Final = 8


def settled_told() -> int:
    """Log how changes ended: one line for each change to which no more answers are to come and that was not logged yet.
    Returns how many lines.
    """
    due = Q(settled_mark=None, built_generation__gt=0)
    due |= Q(built_generation__gt=F("settled_mark__generation")) | Q(settled_mark__open__gt="")
    environments = Environment.objects.filter(due).select_related("settled_mark").order_by("pk")
    return sum(_tell(environment) for environment in environments)


def _tell(environment: Environment) -> int:
    mark = getattr(environment, "settled_mark", None) or SettledMark(
        environment=environment, generation=max(0, environment.built_generation - _OPEN_MAX)
    )
    before = (mark.generation, mark.open)
    opened = {int(each) for each in mark.open.split()}
    now = database_now()
    new = Q(generation__gt=mark.generation, generation__lte=environment.built_generation)
    waiting = Change.objects.filter(new | Q(generation__in=opened), environment=environment, at__gt=now - _TOLD_WITHIN)
    changes = tuple(waiting.select_related("environment").order_by("generation")[:_OPEN_MAX])
    due = [each for each in changes if _is_due(each, now - each.at, first=each.generation not in opened)]
    ended: set[int] = set()
    for start in range(0, len(due), _READ_TOGETHER):
        some = due[start : start + _READ_TOGETHER]
        progress, read = progress_of_changes(changes=some), ChangesRead(environment, some)
        ended |= {each.pk for each in some if _ended(now - each.at, ChangeReading(each, progress[each.pk], read))}
    left = [each.generation for each in changes if each.pk not in ended]
    # Not every generation has a change.
    seen = environment.built_generation if len(changes) < _OPEN_MAX else changes[-1].generation
    mark.generation, mark.open = max(mark.generation, seen), " ".join(map(str, left))
    if mark._state.adding or before != (mark.generation, mark.open):  # noqa: SLF001  Django's own documented attribute
        mark.save()
    return len(changes) - len(left)


def _is_due(change: Change, age: timedelta, *, first: bool) -> bool:
    """Whether a change, written `age` ago, is to be looked at in this run. `first`: it was never looked at."""
    if age < _NOT_BEFORE:
        return False
    age_s = int(age.total_seconds())
    return first or age_s < _AT_FIRST_S or (age_s + change.generation) % _LATER_EVERY_S == 0


def _ended(age: timedelta, reading: ChangeReading) -> bool:
    """Log how a change, written `age` ago, ended where no more answers to it are to come; return whether that is so."""
    change, progress, delivery = reading.change, reading.progress, reading.delivery
    if not (delivery.settled if progress.state is ChangeState.PUBLISHED else progress.state.final):
        return False
    bad = delivery.nacked or progress.state in {ChangeState.FAILED, ChangeState.STOPPED}
    log.log(
        logging.WARNING if bad else logging.INFO,
        "change.settled",
        environment=change.environment.key,
        generation=change.generation,
        state=progress.state.value,
        epoch=progress.epoch,
        held=len(progress.held),
        clients=delivery.clients,
        acked=delivery.acked,
        nacked=delivery.nacked,
        silent=delivery.silent,
        after_s=round(age.total_seconds(), 1),
        **named_fields([ChangeName(str(change.public_id), change.request_id)]),
    )
    return True
