"""Client groups: which clients an access rule speaks of (decisions A10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from xdscore.environment_choice import ClientFacts, Selector
from xdscore.names import canonical
from xdscore.patterns import PatternIndex


class Trust(Enum):
    """By what a client can belong to a group: only by what the transport verified, or also by what it declares about
    itself.
    """

    VERIFIED = "verified"
    DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """A group of clients: those that at least one of the matchers fits. A DECLARED group may count for less, because
    clients could make themselves members (`Audience.verified`).
    """

    key: str
    matchers: tuple[Selector, ...]
    trust: Trust = Trust.DECLARED

    def has(self, client: ClientFacts) -> bool:
        """Whether the client belongs to this group. A client of which nothing was verified belongs to no verified
        group.
        """
        if self.trust is Trust.VERIFIED and not client.verified:
            return False
        return any(matcher.fits(client) for matcher in self.matchers)

    def as_json(self) -> dict[str, object]:
        """The group as a JSON object; equal groups give equal objects."""
        matchers = [matcher.as_json() for matcher in self.matchers]
        return {"key": self.key, "trust": self.trust.value, "matchers": matchers}

    @classmethod
    def from_json(cls, tree: object) -> "ClientGroup":
        """The group that `as_json` made this JSON object of. Raises ValueError for anything else."""
        match tree:
            case {"key": str() as key, "trust": trust, "matchers": list() as matchers, **others} if not others:
                return cls(key, tuple(Selector.from_json(matcher) for matcher in matchers), Trust(trust))
        raise ValueError("not a client group")

    def may_have(self, client: ClientFacts) -> bool:
        """Whether the client might belong to this group if its metadata were known: everything else fits, but what is
        known of it does not suffice.
        """
        matchers = [matcher for matcher in self.matchers if matcher.metadata]
        if not matchers or self.has(client) or (self.trust is Trust.VERIFIED and not client.verified):
            return False
        return any(matcher.but_for_metadata(client) for matcher in matchers)


class GroupIndex:
    """Finds the groups of one client among many groups, without asking each: every matcher is filed under its pattern
    for one fact of a client, and only groups with a pattern that matches are looked at. Immutable.
    """

    __slots__ = ("_always", "_files", "_groups")

    def __init__(self, groups: Sequence[ClientGroup]) -> None:
        self._groups = tuple(groups)
        self._always: set[int] = set()
        filed: dict[str, list[tuple[str, int, bool]]] = {"identity": [], "node_id": [], "node_cluster": []}
        for place, group in enumerate(groups):
            for matcher in group.matchers:
                fact = next((each for each in filed if getattr(matcher, each) is not None), None)
                pattern = "" if fact is None else str(getattr(matcher, fact))
                # The index is one of names, which it knows in their one spelling; a fact has no other than its own.
                if fact is None or pattern != canonical(pattern):
                    self._always.add(place)
                else:
                    filed[fact].append((pattern, place, _suffices(group, matcher, fact)))
        self._files = [
            (attrgetter(fact), PatternIndex([each[0] for each in found]), [each[1:] for each in found])
            for fact, found in filed.items()
            if found
        ]

    def of(self, client: ClientFacts) -> list[ClientGroup]:
        """The groups to which this client belongs (`ClientGroup.has`), in the order in which they were given."""
        if not self._groups:
            return []
        found: set[int] = set()
        asked = set(self._always)
        for fact, index, places in self._files:
            for number in index.matching(fact(client)):
                place, suffices = places[number]
                (found if suffices else asked).add(place)
        groups = self._groups
        found.update([place for place in asked if groups[place].has(client)])
        return [groups[place] for place in sorted(found)]


def _suffices(group: ClientGroup, matcher: Selector, fact: str) -> bool:
    """Whether a client that matches the pattern for this fact belongs to the group, whatever else it is. An identity
    has to be verified as well.
    """
    alone = Selector(**{fact: getattr(matcher, fact)})
    return fact != "identity" and group.trust is Trust.DECLARED and matcher == alone
