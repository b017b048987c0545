"""Nobody rolls back a fleet alone, and nobody what others acknowledged; a fleet can."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.incidents.verdict import ANSWER_WAIT_S, Answers, ClientKey, Outcome, Verdict, judge

EVERYBODY = "spiffe://shop/everybody"
ORDER = [Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL]


def clients(count: int, *, identity: str = "spiffe://shop/{}", start: int = 0) -> dict[str, ClientKey]:
    """By id; each with an identity of its own unless it is said whose."""
    return {
        f"{identity}-{number}": (identity.format(number), f"node-{number}") for number in range(start, start + count)
    }


def pods_of_each(identities: int, *, count: int) -> dict[str, ClientKey]:
    """So many clients of each of so many identities."""
    found: dict[str, ClientKey] = {}
    for identity in range(identities):
        found |= clients(count, identity=f"spiffe://shop/shared-{identity}")
    return found


def answers(
    refused: dict[str, ClientKey],
    acknowledged: dict[str, ClientKey] | None = None,
    *,
    served: dict[str, ClientKey] | None = None,
    proven: bool = False,
    age_s: float = ANSWER_WAIT_S,
) -> Answers:
    taking = acknowledged or {}
    return Answers(12, refused, taking, {**(served or {}), **refused, **taking}, proven or bool(taking), age_s)


@pytest.mark.parametrize(
    ("refusing", "of", "outcome"),
    [
        (0, 5, Outcome.PASS),
        (1, 1, Outcome.INCONCLUSIVE),
        (1, 2, Outcome.INCONCLUSIVE),
        (2, 2, Outcome.FAIL),
        (2, 20, Outcome.FAIL),
        (2, 21, Outcome.INCONCLUSIVE),
        (3, 30, Outcome.FAIL),
        (1, 1_000, Outcome.INCONCLUSIVE),
    ],
)
def test_judge__shares_of_verified_clients__two_identities_and_a_tenth(
    refusing: int, of: int, outcome: Outcome
) -> None:
    verdict = judge(answers(clients(refusing), served=clients(of)))

    assert verdict.outcome is outcome
    assert f"{of}" in verdict.reason


TEN, SHARED = clients(10, start=50), clients(10, identity=EVERYBODY, start=50)
POD = clients(1, identity=EVERYBODY, start=50)


@pytest.mark.parametrize(
    ("given_answers", "asks", "reason"),
    [
        (answers(clients(1), served=TEN), False, "1 of 11 clients refused it; at least 2 must"),
        (answers(clients(2), served=clients(40)), False, "2 of 40 clients refused it; at least 10% must"),
        (
            answers(pods_of_each(2, count=1), served=pods_of_each(2, count=100)),
            False,
            "2 of 200 clients refused it; at least 10% must",
        ),
        (answers(clients(1)), True, "1 of 1 clients refused it; it is the only client"),
        (answers(clients(3), clients(3, start=50)), True, "3 clients acknowledged r12; 3 refuse it"),
        (answers(clients(2), TEN), True, "10 clients acknowledged r12; 2 refuse it"),
        (answers(clients(2, identity=""), SHARED), True, "10 clients acknowledged r12; 2 refuse it"),
        (
            answers(clients(3, identity=""), POD),
            True,
            "1 client acknowledged r12; 3 refuse it, but no identity is verified",
        ),
        (
            answers(clients(3, identity=EVERYBODY), POD),
            True,
            "1 client acknowledged r12; 3 refuse it, but only one verified identity refuses it",
        ),
        (
            answers(clients(2) | clients(20, identity=EVERYBODY), clients(3, start=50)),
            True,
            "3 clients acknowledged r12; 22 refuse it, but some clients share an identity or can prove none",
        ),
        (
            answers(clients(3), proven=True, served=POD | clients(1, identity=EVERYBODY)),
            True,
            "clients acknowledged r12; 3 refuse it, but some clients share an identity or can prove none",
        ),
        (
            answers(clients(1), proven=True),
            True,
            "clients acknowledged r12; 1 refuses it, but only one verified identity refuses it",
        ),
        (answers(clients(2, identity="")), True, "2 of 2 clients refused it; no identity is verified"),
        (
            answers(clients(2, identity=EVERYBODY)),
            True,
            "2 of 2 clients refused it; only one verified identity refuses it",
        ),
        (
            answers(clients(2) | clients(40, identity="spiffe://shop/1"), served=clients(60)),
            True,
            "41 of 99 clients refused it, with 2 of 60 identities; at least 10% must",
        ),
    ],
)
def test_judge__does_not_decide__says_why_and_whether_a_person_is_to(
    given_answers: Answers, asks: bool, reason: str
) -> None:
    said = f"{reason}, so that a person decides" if asks else reason
    assert judge(given_answers) == Verdict(Outcome.INCONCLUSIVE, said, asks)


def test_judge__some_have_not_answered_yet__are_waited_for_while_their_acks_could_outweigh() -> None:
    early = answers(clients(3), served=clients(7), age_s=ANSWER_WAIT_S - 0.1)

    waits = judge(early)

    assert waits == Verdict(
        Outcome.INCONCLUSIVE, "3 of 7 clients refused it; 4 that were sent it may still acknowledge it"
    )
    assert judge(replace(early, age_s=ANSWER_WAIT_S)).outcome is Outcome.FAIL
    assert judge(replace(early, served=clients(5))).outcome is Outcome.FAIL  # two could not outweigh three


def test_judge__one_identity_invents_a_thousand_nodes__the_others_are_not_made_few() -> None:
    verdict = judge(answers(clients(5), served=clients(1_000, identity=EVERYBODY)))

    assert verdict == Verdict(Outcome.FAIL, "5 of 1005 clients refused it", asks=True)


def test_judge__few_odd_ones_acknowledge_what_a_fleet_refuses__the_fleet_decides() -> None:
    verdict = judge(answers(clients(95), clients(5, start=95)))

    assert verdict == Verdict(Outcome.FAIL, "95 of 100 clients refused it", asks=True)


def test_judge__who_refuses_it_acknowledged_it_before__counts_as_refusing() -> None:
    assert judge(answers(clients(2), clients(2))) == Verdict(Outcome.FAIL, "2 of 2 clients refused it", asks=True)


def test_judge__same_client_under_two_ids__counts_once() -> None:
    one = {"one": ("spiffe://shop/a", "node-1"), "two": ("spiffe://shop/a", "node-1")}

    assert judge(answers(one, served=clients(5))) == judge(answers({"one": one["one"]}, served=clients(5)))


# Few of each, so that they often meet.
_identities = st.sampled_from(["", "spiffe://a", "spiffe://b", "spiffe://c", "spiffe://d"])
_keys = st.tuples(_identities, st.sampled_from(["n1", "n2", "n3", "n4"]))
_sides = st.lists(_keys, max_size=12)
_ages = st.sampled_from([0.0, ANSWER_WAIT_S])


def _ids(keys: list[ClientKey]) -> dict[str, ClientKey]:
    return {f"stream-{number}": key for number, key in enumerate(keys)}


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(["", "n1", "n2", "n3"]), st.booleans()), max_size=30), _sides, _ages)
def test_judge__a_single_malicious_client__never_fails_anything_for_two_or_more(
    forged: list[tuple[str, bool]], others: list[ClientKey], age_s: float
) -> None:
    # It says anything of itself: any node id, that of others too, and nothing or everything acknowledged.
    evil = {f"evil-{number}": ("spiffe://evil", node) for number, (node, _) in enumerate(forged)}
    took = {client: key for (client, key), (_, took_it) in zip(evil.items(), forged, strict=True) if took_it}
    for proven in (False, True):
        found = Answers(12, evil, {**_ids(others), **took}, {}, proven, age_s)

        assert judge(found).outcome is not Outcome.FAIL


@settings(max_examples=100)
@given(st.sets(st.text("ab", max_size=3), max_size=30), _sides, _ages)
def test_judge__nothing_is_verified__nobody_acts(nodes: set[str], others: list[ClientKey], age_s: float) -> None:
    refused = {f"stream-{node}": ("", node) for node in nodes}

    assert judge(Answers(12, refused, {}, _ids(others), False, age_s)).outcome is not Outcome.FAIL


@settings(max_examples=100)
@given(_sides, _sides, st.integers(1, 200), _ages)
def test_judge__as_many_acknowledged_as_identities_refuse__more_nodes_of_theirs_change_nothing(
    refusing: list[ClientKey], taking: list[ClientKey], nodes: int, age_s: float
) -> None:
    took = set(taking) - set(refusing)
    if len(took) < len({identity for identity, _ in refusing if identity}):
        return
    invented = {f"{each}-{number}": (each[0], f"x{number}") for each in refusing for number in range(nodes)}

    for refused in (_ids(refusing), {**_ids(refusing), **invented}):
        found = Answers(12, refused, _ids(list(took)), {}, bool(took), age_s)
        assert not took or judge(found).outcome is not Outcome.FAIL


@settings(max_examples=100)
@given(_sides, _sides, _sides, st.booleans(), _ages, st.randoms(use_true_random=False))
def test_judge__order_and_repetition_of_what_was_said__changes_nothing(
    refusing: list[ClientKey],
    taking: list[ClientKey],
    served: list[ClientKey],
    proven: bool,
    age_s: float,
    chance: random.Random,
) -> None:
    def again(keys: list[ClientKey]) -> dict[str, ClientKey]:
        more = keys + chance.choices(keys, k=5) if keys else keys
        return _ids(chance.sample(more, len(more)))

    once = Answers(12, _ids(refusing), _ids(taking), _ids(served), proven, age_s)
    anyhow = Answers(12, again(refusing), again(taking), again(served), proven, age_s)

    assert judge(once) == judge(anyhow)


@settings(max_examples=100)
@given(_sides, _sides, _sides, _ages, _keys)
def test_judge__one_more_acknowledges_it__is_never_worse_for_the_revision(
    refusing: list[ClientKey], taking: list[ClientKey], served: list[ClientKey], age_s: float, one: ClientKey
) -> None:
    before = Answers(12, _ids(refusing), _ids(taking), _ids(served), bool(taking), age_s)
    after = replace(before, acknowledged=_ids([*taking, one]), proven=True)

    assert ORDER.index(judge(after).outcome) <= ORDER.index(judge(before).outcome)
