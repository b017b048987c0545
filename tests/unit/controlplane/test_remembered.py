"""What was made of things that never change is made once, and forgotten when there is too much of it."""

from collections.abc import Collection, Mapping

from controlplane.common.remembered import Remembered


class Maker:
    """Makes the length of a word, but of none that begins with a dash; knows what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, words: Collection[str]) -> Mapping[str, int]:
        self.asked.append(list(words))
        return {word: len(word) for word in words if not word.startswith("-")}


def test_those_of__asked_again__makes_only_what_is_new_and_all_of_it_at_once() -> None:
    kept, maker = Remembered[str, int](10), Maker()

    first = kept.those_of(["a", "bb", "a"], maker)
    second = kept.those_of(["bb", "ccc", "dddd"], maker)
    third = kept.those_of(["a", "ccc"], maker)

    assert (first, second, third) == ({"a": 1, "bb": 2}, {"bb": 2, "ccc": 3, "dddd": 4}, {"a": 1, "ccc": 3})
    assert maker.asked == [["a", "bb"], ["ccc", "dddd"]]


def test_those_of__more_than_it_keeps__forgets_what_was_used_longest_ago() -> None:
    kept, maker = Remembered[str, int](2), Maker()
    kept.those_of(["a", "b"], maker)
    kept.those_of(["a"], maker)

    kept.those_of(["c"], maker)
    kept.those_of(["a", "c"], maker)
    kept.those_of(["b"], maker)

    assert maker.asked == [["a", "b"], ["c"], ["b"]]


def test_those_of__more_asked_than_it_keeps__answers_all() -> None:
    kept, maker = Remembered[str, int](2), Maker()

    assert kept.those_of(["a", "bb", "ccc"], maker) == {"a": 1, "bb": 2, "ccc": 3}


def test_those_of__maker_leaves_one_out__it_is_left_out_and_asked_for_again() -> None:
    kept, maker = Remembered[str, int](2), Maker()

    assert kept.those_of(["-", "a"], maker) == {"a": 1}
    assert kept.those_of(["-", "a"], maker) == {"a": 1}
    assert maker.asked == [["-", "a"], ["-"]]


def test_those_of__values_that_are_weighed__are_kept_up_to_a_weight_and_none_that_weighs_more_alone() -> None:
    maker = Maker()
    kept = Remembered[str, int](6, lambda length: length)
    kept.those_of(["aaa", "bb", "a", "ccccccc"], maker)

    kept.those_of(["aaa", "bb", "a"], maker)
    kept.those_of(["ccccccc"], maker)
    kept.those_of(["dddd"], maker)
    kept.those_of(["a", "dddd"], maker)
    kept.those_of(["aaa"], maker)

    assert maker.asked == [["aaa", "bb", "a", "ccccccc"], ["ccccccc"], ["dddd"], ["aaa"]]
