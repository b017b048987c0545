"""Which rules match a name is noted with it, and taken over from build to build."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.builder.stages.permit import NOTHING, Permitted, permit
from xdscore.access import CLOSED, AccessTable, Effect, Rule
from xdscore.snapshot import Content, Entry, EntryKey, RemovedName, Served, WithheldName

CONTENT = Content(b"\1" * 16, "v1", 10)
ENTRIES = st.dictionaries(
    st.tuples(st.sampled_from(["cluster", "secret"]), st.text("ab", min_size=1, max_size=3)),
    st.sampled_from([Served(CONTENT), Served(CONTENT, CONTENT), WithheldName("x"), RemovedName()]),
    max_size=6,
)
RULES = st.lists(
    st.tuples(st.sampled_from(Effect), st.sampled_from(["a*", "*b", "ab", "*"]), st.sampled_from(["", "cluster"])),
    max_size=4,
).map(lambda rules: tuple(Rule(n, e, p, types=frozenset([t] if t else [])) for n, (e, p, t) in enumerate(rules, 1)))
TABLES = st.builds(AccessTable, st.sampled_from([Effect.ALLOW, Effect.DENY]), rules=RULES)


@given(builds=st.lists(st.tuples(ENTRIES, TABLES), min_size=1, max_size=4))
def test_permit__whatever_was_built_before__notes_what_a_first_build_would(
    builds: list[tuple[dict[EntryKey, Entry], AccessTable]],
) -> None:
    before: Permitted = NOTHING

    for entries, table in builds:
        before = permit(entries, table, before)

        assert before.entries == permit(entries, table).entries


def test_permit__entry_that_did_not_change__is_the_same_object() -> None:
    entries: dict[EntryKey, Entry] = {("cluster", "a"): Served(CONTENT), ("cluster", "b"): Served(CONTENT)}
    table, equal = (AccessTable(Effect.ALLOW, rules=(Rule(7, Effect.DENY, "a"),)) for _ in range(2))
    first = permit(entries, table)

    second = permit({**entries, ("cluster", "b"): Served(CONTENT, CONTENT)}, equal, first)

    assert second.entries["cluster", "a"] is first.entries["cluster", "a"]
    assert second.entries["cluster", "a"] == Served(CONTENT, None, (7,))
    assert second.entries["cluster", "b"] == Served(CONTENT, CONTENT, ())
    assert second.table is table


def test_permit__no_rules__leaves_the_entries_alone() -> None:
    entries: dict[EntryKey, Entry] = {("cluster", "a"): Served(CONTENT)}

    assert permit(entries, AccessTable(Effect.ALLOW)).entries is entries


def test_permit__default_becomes_another__is_noted_with_the_secrets_that_it_leaves_out() -> None:
    entries: dict[EntryKey, Entry] = {("cluster", "a"): Served(CONTENT), ("secret", "a"): Served(CONTENT)}
    denying, allowing = (
        AccessTable(effect, rules=(Rule(7, Effect.DENY, "b"),)) for effect in (Effect.DENY, Effect.ALLOW)
    )
    before = permit(entries, denying)

    after = permit(entries, allowing, before)

    assert before.entries["secret", "a"] == Served(CONTENT, None, ())
    assert after.entries["secret", "a"] == Served(CONTENT, None, (CLOSED,))
    assert after.entries["cluster", "a"] == Served(CONTENT, None, ())
