"""The judge of what clients received: each kind of mistake is told, and nothing that is none."""

from tests.support.change_log import Sight, Version, verdict

FIRST = Version("a", 10, 1, sent=0.0, answered=1.0)
SECOND = Version("a", 11, 2, sent=2.0, answered=3.0)


def saw(*pairs: tuple[int, float], client: int = 0) -> list[Sight]:
    return [Sight(client, "a", value, at) for value, at in pairs]


def test_verdict__each_version_in_order__nothing_but_how_late() -> None:
    found = verdict([FIRST, SECOND], saw((1, 0.0), (10, 1.5), (11, 3.25)), [0])

    assert (found.lost, found.back, found.late_s, found.overtaken) == ((), (), (0.25, 0.5), 0)


def test_verdict__received_before_the_answer__is_not_late() -> None:
    assert verdict([FIRST], saw((10, 0.5)), [0]).late_s == (0.0,)


def test_verdict__only_a_newer_version_came__stands_for_the_older() -> None:
    found = verdict([FIRST, SECOND], saw((11, 3.5)), [0])

    assert (found.lost, found.late_s) == ((), (0.5, 2.5))
    assert found.latest.startswith(str(FIRST))


def test_verdict__last_version_never_came__is_lost() -> None:
    assert verdict([FIRST, SECOND], saw((10, 1.5)), [0]).lost == (f"client 0 has {FIRST}, not {SECOND}",)
    assert verdict([FIRST], [], [0]).lost == (f"client 0 has none of them, not {FIRST}",)


def test_verdict__one_of_two_clients_has_it__the_other_is_told() -> None:
    assert verdict([FIRST], saw((10, 1.5)), [0, 1]).lost == (f"client 1 has none of them, not {FIRST}",)


def test_verdict__an_older_version_after_a_newer_one__went_back_and_is_lost() -> None:
    found = verdict([FIRST, SECOND], saw((11, 3.5), (10, 4.0)), [0])

    assert (len(found.back), len(found.lost)) == (1, 1)


def test_verdict__went_back_and_came_again__is_not_lost() -> None:
    found = verdict([FIRST, SECOND], saw((11, 3.5), (10, 4.0), (11, 5.0)), [0])

    assert (len(found.back), found.lost, found.late_s) == (1, (), (0.5, 2.5))


def test_verdict__older_request_was_written_later__what_stays_is_what_the_generations_say() -> None:
    slow = Version("a", 9, 3, sent=1.5, answered=5.0)

    found = verdict([FIRST, SECOND, slow], saw((10, 1.5), (11, 3.25), (9, 5.5)), [0])

    assert (found.lost, found.back, found.overtaken) == ((), (), 1)
