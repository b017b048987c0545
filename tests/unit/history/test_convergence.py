"""How fast a change spread, of those that should take it."""

from controlplane.history.convergence import convergence


def test_convergence__everybody_took_it__says_when_half_ninety_nine_percent_and_the_last_had_it() -> None:
    found = convergence([(2.0, 60), (0.5, 30), (9.0, 1), (4.0, 9)], of=100)

    assert (found.took, found.of, found.waiting) == (100, 100, 0)
    assert (found.p50_s, found.p99_s, found.last_s) == (2.0, 4.0, 9.0)
    assert found.steps == ((0.0, 0), (0.5, 30), (2.0, 90), (4.0, 99), (9.0, 100))


def test_convergence__half_refuse__never_reaches_its_p99_and_says_how_many_wait() -> None:
    found = convergence([(1.0, 50)], of=100)

    assert (found.p50_s, found.p99_s, found.last_s, found.waiting) == (1.0, None, 1.0, 50)


def test_convergence__nobody_took_it__has_no_times() -> None:
    found = convergence([], of=3)

    assert (found.took, found.p50_s, found.p99_s, found.last_s, found.steps) == (0, None, None, None, ((0.0, 0),))


def test_convergence__taken_before_it_was_published_or_by_more_than_expected__counts_from_zero() -> None:
    found = convergence([(-1.0, 2), (3.0, 1)], of=2)

    assert (found.of, found.waiting) == (3, 0)
    assert found.steps == ((0.0, 2), (3.0, 3))


def test_convergence__of_nobody__is_not_reached() -> None:
    assert convergence([], of=0).p50_s is None


def test_convergence__ten_thousand_moments__are_thinned_and_keep_the_first_the_last_and_every_truth() -> None:
    whole = [(each / 100, 1) for each in range(1, 10_001)]

    found = convergence(whole, of=10_000)

    assert len(found.steps) <= 360
    assert (found.steps[0], found.steps[-1]) == ((0.0, 0), (100.0, 10_000))
    assert all(have == round(second * 100) for second, have in found.steps)
    assert (found.p50_s, found.p99_s) == (50.0, 99.0)


def test_convergence__of_few__ninety_nine_percent_are_all_of_them() -> None:
    found = convergence([(1.0, 2), (5.0, 1)], of=3)

    assert (found.p50_s, found.p99_s) == (1.0, 5.0)
