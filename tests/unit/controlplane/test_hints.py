"""Hints: whoever hints never waits, and equal hints merge."""

import threading
import time

from controlplane.broker.hints import MAX_WAITING, REST_S, Hint, HintSender


class Broker:
    """Takes hints when it is let; fails when told to."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.failing = False
        self.got: list[Hint] = []

    def deliver(self, hint: Hint) -> None:
        self.open.wait(5)
        if self.failing:
            raise ConnectionError("broker is down")
        self.got.append(hint)


def eventually(condition: object) -> bool:
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.005)
    return False


def test_send__broker_frozen__returns_at_once_and_merges_equal_hints() -> None:
    broker = Broker()
    sender = HintSender(broker.deliver)

    started = time.monotonic()
    for _ in range(500):
        sender.send(("build", 1))
        sender.send(("build", 2))
    took = time.monotonic() - started
    broker.open.set()

    assert took < 0.5
    assert eventually(lambda: set(broker.got) == {("build", 1), ("build", 2)})
    assert len(broker.got) <= 4


def test_send__many_hints_to_build__the_first_goes_at_once_and_one_for_all_that_follow_after_the_rest() -> None:
    now = [0.0]
    broker = Broker()
    broker.open.set()
    sender = HintSender(broker.deliver, clock=lambda: now[0])
    sender.send(("build", 1))
    assert eventually(lambda: broker.got == [("build", 1)])

    for _ in range(100):
        sender.send(("build", 1))
    sender.send(("build", 2))

    first_two = [("build", 1), ("build", 2)]
    assert eventually(lambda: broker.got == first_two)  # another environment does not wait
    time.sleep(3 * REST_S["build"])
    assert broker.got == first_two
    now[0] = REST_S["build"]
    assert eventually(lambda: broker.got == [*first_two, ("build", 1)])
    assert not sender._waiting


def test_send__more_hints_than_may_wait__drops_the_rest() -> None:
    broker = Broker()
    sender = HintSender(broker.deliver)

    for number in range(MAX_WAITING + 500):
        sender.send(("build", number))
    broker.open.set()

    assert eventually(lambda: len(broker.got) >= MAX_WAITING)
    assert len(broker.got) <= MAX_WAITING + 1


def test_send__broker_failed__is_left_alone_for_ten_seconds() -> None:
    now = [0.0]
    broker = Broker()
    broker.open.set()
    broker.failing = True
    sender = HintSender(broker.deliver, clock=lambda: now[0])
    sender.send(("build", 1))
    assert eventually(lambda: sender._silent_until == 10.0)
    broker.failing = False

    sender.send(("build", 2))
    assert eventually(lambda: not sender._waiting)
    now[0] = 10.0
    sender.send(("build", 3))

    assert eventually(lambda: broker.got == [("build", 3)])
