"""How a resource stands, over every combination of what may be known of it."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Final

import pytest

from controlplane.status.derivation import status_of
from controlplane.status.values import (
    ConditionType,
    Facts,
    HeldBack,
    Quarantine,
    Reason,
    Refusal,
    ResourceStatus,
    Status,
    Truth,
)

NOON: Final = datetime(2026, 7, 1, 12, tzinfo=UTC)


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


REFUSAL: Final = Refusal("the-incident", clients=2, sent=3, revision=12, since=at(3))
EARLIER: Final = Refusal("an-older-incident", clients=1, sent=1, revision=11, since=at(-30))
QUARANTINES: Final = {
    "": None,
    "all": Quarantine("2 of 2 clients refused it", at(5)),
    "kinds": Quarantine("2 of 2 clients refused it", at(5), withheld_from=("grpc-core 1.85", "grpc-go 1.79")),
}
HELD: Final = {
    "": None,
    "rejected": HeldBack("rejected by clients", served=False, rejected=True, since=at(6)),
    "rejected, older served": HeldBack("rejected by clients", served=True, rejected=True, since=at(6)),
    "stopped": HeldBack("it refers to a Cluster that does not exist", served=False, rejected=False, since=at(2)),
    "stopped, older served": HeldBack("its type could not be built", served=True, rejected=False, since=at(2)),
}
# What Parley serves of a revision that a build has covered: by its quarantine, and by what that build says.
PUBLISHED: Final = {
    ("", ""): Reason.PUBLISHED,
    ("", "rejected"): Reason.WAITING,  # released a moment ago
    ("", "rejected, older served"): Reason.WAITING,
    ("", "stopped"): Reason.STALLED,
    ("", "stopped, older served"): Reason.STALLED,
    ("all", ""): Reason.WAITING,  # quarantined a moment ago
    ("all", "rejected"): Reason.WITHHELD,
    ("all", "rejected, older served"): Reason.QUARANTINED,
    ("all", "stopped"): Reason.WAITING,
    ("all", "stopped, older served"): Reason.WAITING,
    ("kinds", ""): Reason.WAITING,
    ("kinds", "rejected"): Reason.WITHHELD,
    ("kinds", "rejected, older served"): Reason.WITHHELD,
    ("kinds", "stopped"): Reason.WAITING,
    ("kinds", "stopped, older served"): Reason.WAITING,
}
STATUS: Final = {
    Reason.PUBLISHED: Status.PUBLISHED,
    Reason.WAITING: Status.WAITING,
    Reason.STALLED: Status.STALLED,
    Reason.QUARANTINED: Status.QUARANTINED,
    Reason.WITHHELD: Status.WITHHELD,
}
COMBINATIONS: Final = [
    pytest.param(*each, id="/".join(str(part) for part in each))
    for each in product((False, True), QUARANTINES, HELD, (False, True), (False, True), (False, True), (False, True))
]


def facts(**known: object) -> Facts:
    given: dict[str, object] = {"revision": 12, "written_at": NOON, "covered_at": at(1), **known}
    return Facts(**given)  # type: ignore[arg-type]  # the tests' own words


def published(found: ResourceStatus) -> tuple[Truth, Reason]:
    condition = found.condition(ConditionType.PUBLISHED)
    return condition.status, condition.reason


def accepted(found: ResourceStatus) -> tuple[Truth, Reason]:
    condition = found.condition(ConditionType.ACCEPTED)
    return condition.status, condition.reason


@pytest.mark.parametrize(("covered", "quarantine", "held", "refused", "suspected", "known", "before"), COMBINATIONS)
def test_status__every_combination__follows_from_what_is_served_and_what_clients_say(
    covered: bool, quarantine: str, held: str, refused: bool, suspected: bool, known: bool, before: bool
) -> None:
    given = facts(
        covered_at=at(1) if covered else None,
        quarantine=QUARANTINES[quarantine],
        held=HELD[held],
        refusal=REFUSAL if refused else None,
        suspicion=REFUSAL if suspected else None,
        acknowledged_at=at(1) if known else None,
        earlier=EARLIER if before else None,
    )

    found = status_of(given)

    serves = PUBLISHED[quarantine, held] if covered else Reason.WAITING
    assert published(found) == (Truth.TRUE if serves is Reason.PUBLISHED else Truth.FALSE, serves)
    says = {
        refused: (Truth.FALSE, Reason.REFUSED),
        not refused and suspected: (Truth.UNKNOWN, Reason.SUSPECTED),
        not refused and not suspected and known: (Truth.TRUE, Reason.ACKNOWLEDGED),
        not (refused or suspected or known): (Truth.UNKNOWN, Reason.UNACKNOWLEDGED),
    }[True]
    assert accepted(found) == says
    out = serves in {Reason.QUARANTINED, Reason.WITHHELD}
    assert found.status is (Status.REFUSED if refused and not out else STATUS[serves])
    assert found.refusal is (REFUSAL if refused else None)
    assert (found.reason == "") == (found.status is Status.PUBLISHED)
    assert all(each.revision == 12 and each.since >= NOON and each.message.endswith(".") for each in found.conditions)
    # What is in quarantine, or refused, is never sound (issue 2.1b).
    if refused or quarantine:
        assert found.status is not Status.PUBLISHED


def test_status__refused__says_by_how_many_and_which_incident_tells_more() -> None:
    found = status_of(facts(refusal=REFUSAL, acknowledged_at=at(1)))

    condition = found.condition(ConditionType.ACCEPTED)
    assert found.reason == "2 of 3 clients refuse r12."
    assert condition.message == "2 of 3 clients refuse r12. Incident: the-incident."
    assert condition.since == at(3)


def test_status__one_of_one_client__is_told_in_the_singular() -> None:
    found = status_of(facts(refusal=Refusal("i", 1, 1, 12, at(3))))

    assert found.reason == "1 of 1 client refuses r12."


def test_status__written_again_after_it_was_refused__is_refused_since_then() -> None:
    found = status_of(facts(refusal=EARLIER))

    assert found.condition(ConditionType.ACCEPTED).since == NOON


def test_status__fix_that_nobody_acknowledged_yet__names_the_incident_of_the_one_before() -> None:
    found = status_of(facts(earlier=EARLIER))

    assert found.status is Status.PUBLISHED
    message = "No client has acknowledged r12 yet. 1 of 1 client refuses r11. Incident: an-older-incident."
    assert found.condition(ConditionType.ACCEPTED).message == message


@pytest.mark.parametrize(
    ("quarantine", "held", "fallback", "sentence"),
    [
        ("all", "rejected, older served", 11, "r12 is out of service; clients get r11."),
        ("all", "rejected, older served", 0, "r12 is out of service; clients get an older revision."),
        ("all", "rejected", 0, "r12 is withheld, and clients get nothing under this name."),
        ("kinds", "rejected", 0, "r12 is withheld from grpc-core 1.85, grpc-go 1.79; other clients get it."),
    ],
)
def test_status__out_of_service__says_what_clients_get(
    quarantine: str, held: str, fallback: int, sentence: str
) -> None:
    found = status_of(facts(quarantine=QUARANTINES[quarantine], held=HELD[held], fallback=fallback, refusal=REFUSAL))

    assert found.reason == f"{sentence} Why: 2 of 2 clients refused it."
    assert found.condition(ConditionType.PUBLISHED).since == at(5)


def test_status__stalled__says_why_and_what_clients_get() -> None:
    nothing = status_of(facts(held=HELD["stopped"]))
    older = status_of(facts(held=HELD["stopped, older served"]))

    assert nothing.reason == "It refers to a Cluster that does not exist. Clients get nothing under this name."
    assert older.reason == "Its type could not be built. Clients get an older revision."
    assert nothing.condition(ConditionType.PUBLISHED).since == at(2)


@pytest.mark.parametrize(
    ("known", "sentence", "since"),
    [
        ({"covered_at": None}, "r12 is saved and waits for the next build.", NOON),
        ({"quarantine": QUARANTINES["all"]}, "The quarantine of r12 waits for the next build.", at(5)),
        (
            {"held": HELD["rejected"], "released_at": at(9)},
            "r12 is out of quarantine and waits for the next build.",
            at(9),
        ),
    ],
)
def test_status__waiting__says_for_what(known: dict[str, object], sentence: str, since: datetime) -> None:
    found = status_of(facts(**known))

    assert (found.reason, found.condition(ConditionType.PUBLISHED).since) == (sentence, since)


def test_status__published__since_its_build_or_since_its_release() -> None:
    assert status_of(facts()).condition(ConditionType.PUBLISHED).since == at(1)
    assert status_of(facts(released_at=at(9))).condition(ConditionType.PUBLISHED).since == at(9)
