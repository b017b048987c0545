"""What is wrong between a process and the database it shares with the others. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controlplane.catalog.key_words import foreign_sentence

# More than this and "how long ago" is a lie; as `xdsctl doctor` has it for its own machine.
CLOCK_BOUND_S: Final = 5.0
_NAMED: Final = 5
_VARIABLE: Final = "PARLEY_ENCRYPTION_KEYS and restart"


class Check(StrEnum):
    """The thing of a process that is compared with the database: its keys, its migrations or its clock."""

    KEYS = "keys"
    SCHEMA = "schema"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason why the process does not fit: `text` is what is wrong and what to do. `stops`: the process cannot do its
    work so.
    """

    check: Check
    text: str
    stops: bool = False


def judge_keys(ours: Sequence[str], noted: Sequence[str]) -> tuple[Finding, ...]:
    """Compare the marks of this process's keys with those under which things are stored; both newest first.

    A key of ours that nobody has noted is no finding: a rotation begins with it.
    """
    missing = [mark for mark in noted if mark not in ours]
    if noted and len(missing) == len(noted):
        return (Finding(Check.KEYS, foreign_sentence(ours, noted), stops=True),)
    if missing and missing[0] == noted[0]:
        return (_warning(f"lacks the newest key {noted[0]}, which others sign with: put it first in {_VARIABLE}"),)
    if missing:
        names = ", ".join(missing)
        return (_warning(f"lacks {names}, under which something may be stored: add it at the end of {_VARIABLE}"),)
    if noted and ours[0] in noted[1:]:
        return (_warning(f"seals and signs with {ours[0]}, others with the newer {noted[0]}: put that one first"),)
    return ()


def judge_schema(applied: Collection[str], known: Collection[str]) -> tuple[Finding, ...]:
    """Compare the migrations that the database has with those that this code has, each as app.name.

    What only the database has is no reason to stop: migrations add, and the version before serves on (and is gone back
    to) beside them.
    """
    lacking, newer = sorted(set(known) - set(applied)), sorted(set(applied) - set(known))
    found = []
    if lacking:
        text = f"the database has migrations to apply ({_some(lacking)}): manage.py migrate"
        found.append(Finding(Check.SCHEMA, text, stops=True))
    if newer:
        text = f"the database is of a newer version ({_some(newer)}): restart this process with that version"
        found.append(Finding(Check.SCHEMA, text))
    return tuple(found)


def judge_clock(ahead_s: float, unsure_s: float) -> tuple[Finding, ...]:
    """Judge how many seconds this machine's clock is ahead of the database's, known to `unsure_s` seconds.

    Never a reason to stop: it may be the database's that is wrong, and then every process would.
    """
    if abs(ahead_s) - unsure_s <= CLOCK_BOUND_S:
        return ()
    which = "ahead of" if ahead_s > 0 else "behind"
    text = (
        f"the clock of this machine is {abs(ahead_s):.0f} s {which} the database's: certificates, tokens and sessions "
        "are judged by it; set both by NTP"
    )
    return (Finding(Check.CLOCK, text),)


def _warning(text: str) -> Finding:
    return Finding(Check.KEYS, text)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
