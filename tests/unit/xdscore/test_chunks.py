"""Snapshots as bytes."""

import json
import subprocess
import sys
import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chunks import encode_chunks
from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.chunks import (
    CHUNKS,
    ChunkError,
    changed_entries,
    chunk_number,
    decode_access,
    decode_addresses,
    decode_chunk,
    decode_root,
    encode_access,
    encode_root,
)
from xdscore.client_groups import ClientGroup, Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import RESOURCE_TYPES, ResourceType
from xdscore.snapshot import (
    Content,
    Entry,
    EntryKey,
    RemovedName,
    Served,
    Snapshot,
    TypeState,
    WithheldName,
    content_hash,
    snapshot_after,
    snapshot_from_entries,
)

ANYTHING = AccessTable(Effect.ALLOW)

CONTENTS = st.builds(
    Content,
    blob=st.binary(min_size=16, max_size=16),
    version=st.text(max_size=16),
    size=st.integers(0, 2**31),
    eds_name=st.text(max_size=20),
)
ENTRIES = st.one_of(
    st.builds(
        Served, content=CONTENTS, proven=st.none() | CONTENTS, rules=st.none() | st.lists(st.integers(1)).map(tuple)
    ),
    st.builds(WithheldName, reason=st.text()),
    st.just(RemovedName()),
)
KEYS = st.tuples(st.sampled_from([kind.word for kind in RESOURCE_TYPES]), st.text(min_size=1, max_size=30))


@given(entries=st.dictionaries(KEYS, ENTRIES, max_size=30))
def test_chunks__any_entries__come_back_each_from_its_own_chunk(entries: dict[EntryKey, Entry]) -> None:
    chunks = encode_chunks(entries)

    decoded = [decode_chunk(chunk) for chunk in chunks]

    assert {key: entry for part in decoded for key, entry in part} == entries
    assert all(chunk_number(key) == number for number, part in enumerate(decoded) for key, _ in part)


@given(entries=st.dictionaries(KEYS, ENTRIES, max_size=30))
def test_decode_addresses__any_entries__are_those_of_what_is_served(entries: dict[EntryKey, Entry]) -> None:
    found = {key: address for chunk in encode_chunks(entries) for key, address in decode_addresses(chunk).items()}

    assert found == {key: entry.content.blob.hex() for key, entry in entries.items() if isinstance(entry, Served)}


@given(entries=st.dictionaries(KEYS, ENTRIES, max_size=30), key=KEYS, entry=ENTRIES)
def test_chunks__one_name_changes__one_chunk_changes(
    entries: dict[EntryKey, Entry], key: EntryKey, entry: Entry
) -> None:
    before, after = encode_chunks(entries), encode_chunks({**entries, key: entry})

    changed = {number for number in range(CHUNKS) if before[number] != after[number]}

    assert changed <= {chunk_number(key)}


@given(
    before=st.dictionaries(KEYS, ENTRIES, max_size=30),
    other=st.dictionaries(KEYS, ENTRIES, max_size=10),
    data=st.data(),
)
def test_snapshot_after__any_changes__is_the_snapshot_of_the_entries_after(
    before: dict[EntryKey, Entry], other: dict[EntryKey, Entry], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
    now = {key: entry for key, entry in before.items() if key not in gone} | other
    # As read: equal, and not the same objects.
    chunks = [[decode_chunk(chunk) for chunk in encode_chunks(entries)] for entries in (before, now)]
    earlier, whole = (_snapshot(entry for chunk in part for entry in chunk) for part in chunks)
    for state in earlier.types.values():
        state.by_rules()

    changes = changed_entries(*chunks)
    after = snapshot_after(earlier, lineage="l", epoch=2, access=ANYTHING, changes=changes)

    assert changes.keys() == {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
    touched = {word for word, _ in changes}
    for word, state in whole.types.items():
        assert _shown(after.types[word]) == _shown(state)
        assert (after.types[word] is earlier.types[word]) == (word not in touched)
        held = after.types[word].served.items() & earlier.types[word].served.items()
        assert all(after.types[word].served[name] is earlier.types[word].served[name] for name, _ in held)


def _snapshot(entries: Iterable[tuple[EntryKey, Entry]]) -> Snapshot:
    return snapshot_from_entries(environment="prod", lineage="l", epoch=1, access=ANYTHING, entries=entries)


def _shown(state: TypeState) -> tuple[object, ...]:
    return (state.kind, state.served, state.withheld, state.removed, state.unreadable, state.by_rules())


def test_chunks__other_hash_seed__gives_the_same_bytes() -> None:
    program = (
        "from tests.support.chunks import encode_chunks; from xdscore.snapshot import *\n"
        "e = {('cluster', f'c{i}'): Served(Content(bytes(16), 'v', i), None) for i in range(300)}\n"
        "print(content_hash(b''.join(encode_chunks(e))).hex())"
    )

    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }

    assert len(digests) == 1


def test_root__addresses__come_back_in_order() -> None:
    addresses = tuple(content_hash(bytes([number])) for number in range(CHUNKS))

    assert decode_root(encode_root(addresses)) == addresses


SELECTORS = st.builds(
    Selector,
    identity=st.none() | st.text(min_size=1),
    node_id=st.none() | st.text(min_size=1),
    node_cluster=st.none() | st.text(min_size=1),
    metadata=st.dictionaries(st.text(), st.text(), max_size=2),
)
GROUPS = st.lists(
    st.builds(
        ClientGroup, key=st.text(), matchers=st.lists(SELECTORS, max_size=2).map(tuple), trust=st.sampled_from(Trust)
    ),
    max_size=3,
    unique_by=lambda group: group.key,
).map(tuple)


@st.composite
def tables(draw: st.DrawFn) -> AccessTable:
    groups = draw(GROUPS)
    keys = st.frozensets(st.sampled_from([group.key for group in groups])) if groups else st.just(frozenset[str]())
    rules = st.builds(
        Rule,
        number=st.integers(1),
        effect=st.sampled_from(Effect),
        pattern=st.text(),
        client_groups=keys,
        types=st.frozensets(st.sampled_from([kind.word for kind in RESOURCE_TYPES])),
        message=st.text(),
    )
    numbered = st.lists(rules, max_size=4, unique_by=lambda rule: rule.number).map(tuple)
    default = draw(st.sampled_from(Effect))
    of_before = default is Effect.ALLOW and draw(st.booleans())
    return AccessTable(default, groups, draw(numbered), default_covers_secrets=of_before)


@given(table=tables())
def test_access__any_table__comes_back(table: AccessTable) -> None:
    assert decode_access(encode_access(table)) == table


@given(data=st.data(), table=tables(), kind=st.sampled_from(RESOURCE_TYPES), name=st.text(), verified=st.booleans())
def test_access__any_table__is_decided_alike_by_a_process_of_the_version_before(
    data: st.DataObject, table: AccessTable, kind: ResourceType, name: str, verified: bool
) -> None:
    groups = data.draw(st.frozensets(st.sampled_from([group.key for group in table.groups] or ["none"])))
    audience = Audience("prod", groups, verified)
    before = as_the_version_before_reads(encode_access(table))

    row = table.row(kind, name)
    decided = table.ruling(audience, kind, name)

    assert before.ruling(audience, kind, name) == decided
    assert before.permissions(audience, kind).of_row(row) == decided
    assert all(number in {rule.number for rule in before.rules} for number in row)


def as_the_version_before_reads(data: bytes) -> AccessTable:
    """The table in which every rule is one like the others, and a default that allows covers everything behind them."""
    tree = json.loads(zlib.decompress(data[1:]))
    groups = tuple(
        ClientGroup(row["key"], tuple(Selector(**each) for each in row["matchers"]), Trust(row["trust"]))
        for row in tree["groups"]
    )
    rules = tuple(
        Rule(number, Effect(effect), pattern, frozenset(groups), frozenset(types), message)
        for number, effect, pattern, groups, types, message in tree["rules"]
    )
    return AccessTable(Effect(tree["default"]), groups, rules, default_covers_secrets=True)


def test_access__table_that_contradicts_itself__is_refused() -> None:
    good = encode_access(AccessTable(Effect.ALLOW, rules=(Rule(1, Effect.DENY, "a"),)))
    tree = json.loads(zlib.decompress(good[1:]))
    tree["rules"][0][3] = ["nobody"]

    with pytest.raises(ChunkError, match="group that is missing"):
        decode_access(good[:1] + zlib.compress(json.dumps(tree).encode()))


def test_access__format_of_an_older_version__is_refused() -> None:
    # An older process knew no rules: what it wrote must not be read as a table that has none, nor the other way round.
    with pytest.raises(ChunkError, match="format 01"):
        decode_access(b'\1{"default":"allow"}')


@given(data=st.binary(max_size=200))
def test_decode__arbitrary_bytes__are_refused_and_never_crash(data: bytes) -> None:
    for decode in (decode_chunk, decode_addresses, decode_root, decode_access):
        with pytest.raises(ChunkError):
            decode(data)


@given(entries=st.dictionaries(KEYS, ENTRIES, min_size=1, max_size=5), cut=st.integers(1, 10))
def test_decode_chunk__truncated__is_refused(entries: dict[EntryKey, Entry], cut: int) -> None:
    chunk = max(encode_chunks(entries), key=len)

    with pytest.raises(ChunkError):
        decode_chunk(chunk[:-cut])
