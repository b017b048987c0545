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
    """What of a process is compared with the database: its keys, its migrations, its clock, or the sets of descriptors
    that it reads by.
    """

    KEYS = "keys"
    SCHEMA = "schema"
    CLOCK = "clock"
    SETS = "sets"


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason why this process does not fit the installation. `text`: what is wrong and what to do; `stops`: whether
    the process cannot do its work because of it.
    """

    check: Check
    text: str
    stops: bool = False


def judge_keys(ours: Sequence[str], noted: Sequence[str]) -> tuple[Finding, ...]:
    """Compare the marks (short hashes) of this process's keys with those of the keys under which things are stored;
    both newest first. A key that only this process has is no finding, because a rotation of keys begins so.
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

    A migration that only the database has does not stop the process: migrations only add, and the version before this
    one goes on serving with them.
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
    """Judge by how many seconds this machine's clock is ahead of the database's. `unsure_s`: how exact that is, in
    seconds.

    It never stops a process: if the database's clock is the wrong one, all of them would stop.
    """
    if abs(ahead_s) - unsure_s <= CLOCK_BOUND_S:
        return ()
    which = "ahead of" if ahead_s > 0 else "behind"
    text = (
        f"the clock of this machine is {abs(ahead_s):.0f} s {which} the database's: certificates, tokens and sessions "
        "are judged by it; set both by NTP"
    )
    return (Finding(Check.CLOCK, text),)


def judge_sets(problem: str) -> tuple[Finding, ...]:
    """Judge by why the sets of descriptors in the database cannot be read by; empty when they are."""
    if not problem:
        return ()
    text = f"the sets of descriptors that were added do not fit this version ({problem}): manage.py schema check"
    return (Finding(Check.SETS, text),)


def _warning(text: str) -> Finding:
    return Finding(Check.KEYS, text)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
