"""Notes with each served name which access rules match it (decisions part 6), so that no ADS process matches patterns
for the names it serves. A name's row depends on the name and the rules alone: what a build before found is taken over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdscore.access import AccessTable, Effect
from xdscore.resource_types import by_word
from xdscore.snapshot import Entry, EntryKey, Served


@dataclass(frozen=True, slots=True)
class Permitted:
    """Entries with their rows of the access table, the entries as they came in, and the table whose rules the rows
    name.
    """

    table: AccessTable
    entries: Mapping[EntryKey, Entry] = field(default_factory=dict)
    plain: Mapping[EntryKey, Entry] = field(default_factory=dict)


NOTHING = Permitted(AccessTable(Effect.DENY))


def permit(entries: Mapping[EntryKey, Entry], table: AccessTable, before: Permitted = NOTHING) -> Permitted:
    """The entries with their rows of this table; an entry that did not change since `before` is the same object.

    Without rules there is nothing to note, and the entries are those that came in.
    """
    if not table.rules:
        return Permitted(table, entries, entries)
    known = (before.table.rules, before.table.closed) == (table.rules, table.closed)
    if known and before.table == table:
        table = before.table  # its patterns are compiled
    permitted: dict[EntryKey, Entry] = {}
    for key, entry in entries.items():
        old = before.entries.get(key) if known else None
        if not isinstance(entry, Served):
            permitted[key] = entry
        elif old is not None and before.plain.get(key) is entry:
            permitted[key] = old
        elif isinstance(old, Served):
            permitted[key] = Served(entry.content, entry.proven, old.rules)
        else:
            word, name = key
            kind = by_word.get(word)  # None: of a later version, which looks for the rules of what it serves itself
            row = table.row(kind, name) if kind is not None else None
            permitted[key] = Served(entry.content, entry.proven, row)
    return Permitted(table, permitted, entries)
