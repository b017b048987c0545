"""The search for what Envoy refuses, against a judge whose mind is known."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from controlplane.builder.stages.fallback import Cause, resolve
from controlplane.builder.stages.inspect import (
    ACCEPTED,
    Answer,
    EnvoyVerdict,
    Judge,
    Search,
    about_unknown_cluster,
    find_refused,
)
from controlplane.builder.stages.wording import findings_of_held
from controlplane.catalog.heads import Head
from xdscore.snapshot import Content, EntryKey, Served, WithheldName

OLD, NEW = Content(b"o" * 16, "old", 10), Content(b"n" * 16, "new", 10)


def keys(count: int) -> list[EntryKey]:
    return [("cluster", f"c{number:02}") for number in range(count)]


def dislikes(*sets: set[EntryKey]) -> Judge:
    """Refuses whatever holds all of one of these sets, and names the set."""

    def judge(row: Sequence[EntryKey]) -> Answer:
        for each in sets:
            if each <= set(row):
                return Answer(EnvoyVerdict.REFUSED, " and ".join(name for _, name in sorted(each)))
        return ACCEPTED

    return judge


@given(st.integers(0, 40), st.sets(st.integers(0, 39)))
def test_find_refused__some_are_bad_by_themselves__exactly_those_are_found(count: int, bad: set[int]) -> None:
    row = keys(count)
    culprits = {row[number] for number in bad if number < count}

    found = find_refused([], row, dislikes(*({each} for each in culprits)))

    assert found == Search({key: key[1] for key in culprits}, {})


def test_find_refused__two_that_cannot_stand_together__the_later_gives_way() -> None:
    first, between, second = keys(3)

    found = find_refused([], [first, between, second], dislikes({first, second}))

    assert found.refused == {second: "c00 and c02"}


def test_find_refused__what_stands_already_is_refused__is_told_and_not_blamed() -> None:
    proven, new, bad = keys(3)

    found = find_refused([proven], [new, bad], dislikes({proven}, {bad}))

    assert found == Search({bad: "c02"}, {proven: "c00"})


def test_find_refused__one_bad_of_1000__takes_few_questions() -> None:
    row = keys(1_000)
    asked: list[int] = []

    def judge(part: Sequence[EntryKey]) -> Answer:
        asked.append(len(part))
        return dislikes({row[700]})(part)

    find_refused([], row, judge)

    assert len(asked) <= 13


def test_find_refused__no_verdict_in_the_middle__keeps_what_was_found_and_says_why() -> None:
    row = keys(8)
    left = iter([True] * 6)  # the whole, nothing, three halves, the rest; then none

    def judge(part: Sequence[EntryKey]) -> Answer:
        return dislikes({row[2]}, {row[5]})(part) if next(left, False) else Answer(EnvoyVerdict.UNDECIDED, "too late")

    found = find_refused([], row, judge)

    assert found == Search({row[2]: "c02"}, {}, "too late")


def test_find_refused__even_nothing_is_refused__blames_nobody() -> None:
    found = find_refused([], keys(3), lambda _: Answer(EnvoyVerdict.REFUSED, "no space left"))

    assert found == Search({}, {}, "no space left")


def test_find_refused__a_cluster_is_missing__is_doubt_and_no_refusal() -> None:
    (listener,) = keys(1)
    text = "Unknown gRPC client cluster 'als'"

    found = find_refused([], [listener], lambda row: Answer(EnvoyVerdict.REFUSED, text) if row else ACCEPTED)

    assert found == Search({}, {listener: text})
    assert not about_unknown_cluster("The table size of maglev must be prime number")


def test_resolve__refused_by_envoy__runs_what_was_proven_or_says_so_to_clients() -> None:
    fresh, known = Head(("cluster", "fresh"), NEW), Head(("cluster", "known"), NEW, proven=OLD)

    resolution = resolve({head.key: head for head in (fresh, known)}, {fresh.key: "no prime", known.key: "no prime"})

    assert resolution.entries[fresh.key] == WithheldName("an Envoy that checked it refused it")
    assert resolution.entries[known.key] == Served(OLD, OLD)
    assert {each.cause for each in resolution.held} == {Cause.ENVOY}
    (finding,) = findings_of_held(resolution.held[0], resolution, "prod", {})
    assert (finding.code, finding.detail) == ("XDS2007", "Envoy refuses it: no prime.")
