"""One client must never roll back a fleet; a fleet can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.incidents.verdict import SOLE_CLIENT_WAIT_S, ClientKey, Outcome, judge

OLD = SOLE_CLIENT_WAIT_S


def clients(count: int, *, identity: str = "", start: int = 0) -> dict[str, ClientKey]:
    return {f"{identity}-{number}": (identity, f"node-{number}") for number in range(start, start + count)}


@pytest.mark.parametrize(
    ("refusing", "of", "outcome"),
    [
        (0, 5, Outcome.PASS),
        (1, 1, Outcome.FAIL),
        (1, 2, Outcome.INCONCLUSIVE),
        (2, 2, Outcome.FAIL),
        (2, 20, Outcome.FAIL),
        (2, 21, Outcome.INCONCLUSIVE),
        (3, 30, Outcome.FAIL),
        (1, 1_000, Outcome.INCONCLUSIVE),
    ],
)
def test_judge__shares_of_a_fleet_without_identities__two_clients_and_a_tenth(
    refusing: int, of: int, outcome: Outcome
) -> None:
    verdict = judge(nacked=clients(refusing), served=clients(of), age_s=OLD)

    assert verdict.outcome is outcome
    assert f"{of}" in verdict.reason or outcome is Outcome.FAIL


def test_judge__only_client_so_far__waits_for_others_to_connect() -> None:
    early = judge(nacked=clients(1), served=clients(1), age_s=SOLE_CLIENT_WAIT_S - 0.1)

    assert early.outcome is Outcome.INCONCLUSIVE
    assert judge(nacked=clients(1), served=clients(1), age_s=SOLE_CLIENT_WAIT_S).outcome is Outcome.FAIL


def test_judge__one_identity_with_many_nodes_among_others__does_not_decide() -> None:
    forged, honest = clients(50, identity="spiffe://corp/evil"), clients(50, identity="spiffe://corp/pay")

    verdict = judge(nacked=forged, served=forged | honest, age_s=OLD)

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "identity" in verdict.reason


def test_judge__one_identity_with_many_pods_and_nobody_else__decides() -> None:
    pods = clients(200, identity="spiffe://corp/pay")

    assert judge(nacked=dict(list(pods.items())[:20]), served=pods, age_s=OLD).outcome is Outcome.FAIL


def test_judge__same_client_under_two_ids__counts_once() -> None:
    nacked = {"one": ("", "node-1"), "two": ("", "node-1")}

    assert judge(nacked=nacked, served=nacked | clients(5, start=2), age_s=OLD).outcome is Outcome.INCONCLUSIVE


@given(st.integers(0, 60), st.integers(2, 60), st.floats(0, 100))
def test_judge__a_single_malicious_client__never_fails_anything_for_two_or_more(
    repeats: int, others: int, age_s: float
) -> None:
    # However many times and under whatever ids it refuses: one (identity, node id).
    nacked = {f"stream-{number}": ("", "evil") for number in range(repeats)}

    assert judge(nacked=nacked, served=clients(others), age_s=age_s).outcome is not Outcome.FAIL
