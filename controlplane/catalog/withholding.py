"""From whom a revision in quarantine is withheld that nothing older can stand in for. Pure.

What some clients acknowledged is not taken from them because others refuse it: it is withheld from the kinds of clients
that refuse it (docs/reference/protocol.md, F18a; decisions C10 and reliability N4 as amended there). A kind is a
family and version, as clients say; who refused is told by `client_mark`. Another verified identity may try it, and the
kind of whoever took it gets it again: two that refuse must not keep something from all that come later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdscore.snapshot import MAX_REFUSERS, Content, WithheldName

# decisions A12: so many kinds are told apart. Where more refuse it, it is withheld from everybody.
MAX_KINDS = 20

Marks = Mapping[str, tuple[str, ...]]
"""The marks of some clients of each kind, by kind."""


@dataclass(frozen=True, slots=True)
class Withholding:
    """Which clients do not get a revision that is in quarantine.

    `refused_by`: by kind of client, the hashes (`client_mark`) of the clients that refused the revision.
    `accepted_by`: by kind, those of the clients that took it when they were let try it.
    `acknowledged`: some client acknowledged the revision.
    `probed`: clients may be let try it; not where an operator put it into quarantine.
    """

    refused_by: Marks
    accepted_by: Marks
    acknowledged: bool = False
    probed: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of clients of which some refused the revision, and none that was let try took it."""
        return tuple(
            sorted(kind for kind, marks in self.refused_by.items() if marks and not self.accepted_by.get(kind))
        )

    @property
    def withheld_from(self) -> tuple[str, ...]:
        """The kinds of clients that do not get the revision while all others do; empty where nobody gets it."""
        return self.kinds if self.acknowledged and len(self.kinds) <= MAX_KINDS else ()

    @property
    def over(self) -> bool:
        """Whether the quarantine can end: of every kind of client that refused the revision, some client has taken it
        since.
        """
        return bool(self.refused_by) and not self.kinds

    def entry(self, content: Content, reason: str) -> WithheldName:
        """What a snapshot holds for the name while the revision is in quarantine and no older one can be served.
        `reason` is what clients are told.
        """
        refusers = tuple(sorted({mark for marks in self.refused_by.values() for mark in marks}))[:MAX_REFUSERS]
        may_probe = refusers if self.probed else ()
        if kinds := self.withheld_from:
            return WithheldName(f"{reason} of this kind", content, kinds, may_probe)
        return WithheldName(reason, content, (), may_probe) if may_probe else WithheldName(reason)


def with_marks(before: Marks, more: Mapping[str, Iterable[str]]) -> Marks:
    """The hashes of clients in `before` and `more` together, by kind of client; of each kind the first ones, up to a
    limit, and up to a limit of kinds.
    """
    found = dict(before)
    for kind, marks in more.items():
        known = found.get(kind, ())
        new = tuple(dict.fromkeys(mark for mark in marks if mark not in known))
        if len(found) <= MAX_KINDS or known:
            found[kind] = (*known, *new)[:MAX_REFUSERS]
    return found


def marks_of(stored: Mapping[str, Iterable[str]]) -> Marks:
    """The hashes of clients that a column of the database stores as lists, as tuples."""
    return {kind: tuple(marks) for kind, marks in stored.items()}
