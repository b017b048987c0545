"""What Envoy answered is kept for every worker: by its version and what it was shown, no more than a bounded number."""

import pytest

from controlplane.builder.deep import answers
from controlplane.builder.deep.answers import KeptAnswers
from controlplane.builder.models import EnvoyAnswer
from controlplane.builder.stages.inspect import ACCEPTED, Answer, EnvoyVerdict

REFUSED = Answer(EnvoyVerdict.REFUSED, "no")
UNDECIDED = Answer(EnvoyVerdict.UNDECIDED, "the time for it was over")


class Counting:
    """A judge that counts what it is asked, and refuses what begins with "bad"."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def __call__(self, configuration: bytes) -> Answer:
        self.asked.append(configuration)
        return REFUSED if configuration.startswith(b"bad") else ACCEPTED


def test_answers__same_question_of_another_worker__costs_no_run(database: str) -> None:
    first, second = Counting(), Counting()
    assert [KeptAnswers(first, "1.40")(each) for each in (b"good", b"bad")] == [ACCEPTED, REFUSED]

    assert [KeptAnswers(second, "1.40")(each) for each in (b"good", b"bad")] == [ACCEPTED, REFUSED]

    assert first.asked == [b"good", b"bad"]
    assert second.asked == []


def test_answers__another_version_or_configuration__is_another_question(database: str) -> None:
    judge = Counting()
    for version, configuration in (("1.40", b"good"), ("1.41", b"good"), ("1.40", b"good "), ("1.40", b"good")):
        KeptAnswers(judge, version)(configuration)

    assert judge.asked == [b"good", b"good", b"good "]


def test_answers__no_verdict__is_asked_again(database: str) -> None:
    assert KeptAnswers(lambda _: UNDECIDED, "1.40")(b"good") == UNDECIDED

    assert KeptAnswers(Counting(), "1.40")(b"good") == ACCEPTED


def test_answers__more_than_are_kept__forget_the_oldest(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_ANSWERS", 2)
    judge = Counting()
    ask = KeptAnswers(judge, "1.40")

    for configuration in (b"1", b"2", b"3"):
        ask(configuration)

    assert EnvoyAnswer.objects.count() == 2
    judge.asked.clear()
    ask(b"3")
    ask(b"2")
    assert judge.asked == []
    ask(b"1")
    assert judge.asked == [b"1"]
