"""Says what one access table rules about lists of names that many clients share.

Names that the same rules match are decided alike, so a list comes down to the few rows that its names have (decisions
part 6), and a fleet to its audiences. The table that decides for streams decides here (architecture.md law 2). Metadata
of clients is not kept, so groups over it hold nobody.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from controlplane.common.remembered import Remembered
from xdscore.access import CLOSED, AccessTable, Audience, Effect
from xdscore.environment_choice import ClientFacts
from xdscore.names import canonical
from xdscore.resource_types import RESOURCE_TYPES, by_word

Row = tuple[int, ...]
"""The numbers of the access rules that match a name, in order."""
Rows = frozenset[Row]
Who = tuple[str, str, str]
"""The identity, node id and cluster of a client: what is kept of it that groups look at."""

_NOBODYS: Final[Rows] = frozenset()
_Client = tuple[str, str, frozenset[int], Who]
"""The environment, the address of its access table, the rules that matter, and the client."""
# More than a fleet of 5,000 has, at some hundred bytes each.
_audiences: Final = Remembered[_Client, Audience](20_000)


class Rulings:
    """Answers what an environment's access table says of many names to many clients, for one request. `address` is that
    of the table.
    """

    def __init__(self, environment: str, address: str, table: AccessTable) -> None:
        self.environment = environment
        self.address = address
        self._table = table
        self._denying = {CLOSED, *(rule.number for rule in table.rules if rule.effect is Effect.DENY)}
        self._for_all = {rule.number: rule.effect for rule in table.rules if not rule.client_groups}
        self._for_all[CLOSED] = Effect.DENY
        self._rows: dict[tuple[str, str], Row] = {}
        self._said: dict[tuple[Effect, Audience, str, Rows], bool] = {}

    @property
    def denied_words(self) -> frozenset[str]:
        """The types with names that at least one client may not read."""
        rules = [rule for rule in self._table.rules if rule.effect is Effect.DENY]
        return frozenset(
            kind.word
            for kind in RESOURCE_TYPES
            if self._table.by_default(kind).effect is Effect.DENY or any(rule.covers(kind) for rule in rules)
        )

    def rows(self, word: str, names: Iterable[str]) -> Rows:
        """The rows of the access table for these names."""
        return frozenset(self._row(word, name) for name in names)

    def rows_denied(self, word: str, lists: Mapping[str, Collection[str]]) -> Mapping[str, Rows]:
        """For each list, the table's rows of those of its names that some client may not read, and is told so. Most
        names are not among them.
        """
        together = {name for names in lists.values() for name in names}
        rows = {name: row for name in together if self._may_deny(row := self._row(word, name))}
        return {
            key: frozenset(rows[name] for name in rows.keys() & names) if rows else _NOBODYS
            for key, names in lists.items()
        }

    def among(self, rows: Iterable[Rows]) -> "Rulings":
        """The rulings with only the rules that are in one of these rows, so that only the groups of these tell one
        client from another.
        """
        numbers = {number for some in rows for row in some for number in row}
        return Rulings(self.environment, self.address, self._table.only(numbers))

    def audiences(self, clients: Collection[Who]) -> Mapping[Who, Audience]:
        """The audience to which each of these clients belongs."""
        rules = frozenset(rule.number for rule in self._table.rules)
        known = _audiences.those_of([(self.environment, self.address, rules, who) for who in clients], self._made)
        return {who: audience for (*_, who), audience in known.items()}

    def says_to_all(self, effect: Effect, rows: Rows) -> bool:
        """Whether one of these rows has this effect for every client, as far as that can be seen without looking at
        any.
        """
        return any(self._to_all(row) is effect for row in rows)

    def says(self, effect: Effect, audience: Audience, word: str, rows: Rows) -> bool:
        """Whether one of these rows has this effect for clients of this audience."""
        key = (effect, audience, word, rows)
        said = self._said.get(key)
        if said is None:
            of_row = self._table.permissions(audience, by_word[word]).of_row
            said = self._said[key] = any(of_row(row).effect is effect for row in rows)
        return said

    def _row(self, word: str, name: str) -> Row:
        key = (word, name)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._table.row(by_word[word], canonical(name))
        return row

    def _to_all(self, row: Row) -> Effect | None:
        return self._for_all.get(row[0]) if row else self._table.default

    def _may_deny(self, row: Row) -> bool:
        return self._table.default is Effect.DENY or not self._denying.isdisjoint(row)

    def _made(self, keys: Collection[_Client]) -> Mapping[_Client, Audience]:
        # Equal audiences are one object: they are compared for every client of a fleet.
        same: dict[Audience, Audience] = {}
        found = {}
        for key in keys:
            audience = self._table.audience(self.environment, ClientFacts(*key[-1]))
            found[key] = same.setdefault(audience, audience)
        return found
