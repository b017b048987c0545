"""When a process is started again."""

from controlplane.ops.supervisor.backoff import Backoff


def test_backoff__ends_at_once_every_time__doubles_up_to_thirty_seconds() -> None:
    backoff = Backoff()

    waits = [backoff.after(0.1) for _ in range(7)]

    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_backoff__ran_for_a_minute__starts_over() -> None:
    backoff = Backoff()
    for _ in range(4):
        backoff.after(59.9)

    assert backoff.after(60.0) == 1
    assert backoff.after(0.0) == 2
