"""Which NACKs are one incident."""

import itertools

import pytest

from controlplane.incidents.fingerprint import ALGORITHM, FINGERPRINT_CHARS, fingerprint, normalised_text, part_about
from xdscore.client_kinds import ClientFamily


def mark(*, word: str = "cluster", name: str = "pay", family: str = "envoy", text: str = "Invalid duration") -> str:
    return fingerprint(word=word, name=name, family=ClientFamily(family), normalised=normalised_text(text))


def test_fingerprint__same_fault_told_by_another_process__is_the_same() -> None:
    one = "Invalid duration: Expected positive duration: goo.gle/debugstr  \nseconds: -1\n"
    other = "Invalid duration: Expected positive duration: goo.gle/debugonly    \nseconds: -1"

    assert mark(text=one) == mark(text=other)


def test_fingerprint__each_part_differs__all_differ() -> None:
    marks = [
        mark(),
        mark(word="listener"),
        mark(name="edge"),
        mark(name=""),
        mark(name="?"),
        mark(family="grpc-core"),
        mark(text="Invalid path"),
    ]

    assert all(one != other for one, other in itertools.combinations(marks, 2))
    assert {len(each) for each in marks} == {FINGERPRINT_CHARS}


def test_fingerprint__of_an_incident_that_is_stored__never_changes() -> None:
    # Stored incidents are found by it: another value here needs another ALGORITHM.
    assert (ALGORITHM, mark()) == ("v1", "c7a12a8c0da5e87a89b1fcf7a3e4a896")


@pytest.mark.parametrize(
    ("alone", "together"),
    [
        (
            "Error adding/updating cluster(s) a: no checker, I say",
            "Error adding/updating cluster(s) b: other, x, a: no checker, I say, c: what",
        ),
        ("Error adding/updating listener(s) a: no filter\n", "Error adding/updating listener(s) b: no\na: no filter\n"),
        (
            "xDS response validation errors: [resource index 0: a: INVALID_ARGUMENT: bad]",
            "xDS response validation errors: [resource index 3: a: INVALID_ARGUMENT: bad; resource index 4: b: worse]",
        ),
        ("missing ): (", "missing ): ("),
    ],
)
def test_part_about__refused_alone_or_with_others__is_the_same(alone: str, together: str) -> None:
    assert normalised_text(part_about(alone, "a", {"a"})) == normalised_text(part_about(together, "a", {"a", "b", "c"}))
