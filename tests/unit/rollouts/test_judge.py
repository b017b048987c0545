"""What the answers to a step mean: the rules R8, R9, R10 and the gates of rollouts.md, one by one."""

from dataclasses import replace

import pytest

from controlplane.catalog.rollout_settings import Unexposed
from controlplane.rollouts.cohort import MAX_PILOTS
from controlplane.rollouts.facts import (
    Answer,
    Ask,
    Facts,
    NewError,
    NotInUse,
    Others,
    Rules,
    Streams,
    WebhookSaid,
    facts_from_json,
    facts_json,
)
from controlplane.rollouts.judge import judge, state_of
from controlplane.rollouts.values import ClientState, Outcome
from tests.unit.rollouts.facts_made import (
    ENVOY,
    GO,
    PAY,
    PILOT,
    REFUSED,
    SENT,
    SHOP,
    STEPS,
    TAKEN,
    UNSENT,
    UNSURE,
    client,
    facts,
)

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
LATE = 31.0


# --- Refusals (R8)


def test_judge__one_of_each_kind_took_it__passes() -> None:
    verdict = judge(facts(client("a"), client("b", kind=GO), others=5), PILOT)

    assert (verdict.outcome, verdict.reasons) == (PASS, ("2 of 2 clients that were asked took all of it",))


def test_judge__the_only_client_of_a_kind_refuses__fails() -> None:
    verdict = judge(facts(client("a"), client("b", REFUSED, kind=GO)), PILOT)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset({PAY}))
    assert verdict.reasons == ("the only grpc-go 1.66 that could be asked refuses the cluster 'pay'",)


def test_judge__one_refuses_and_others_may_be_asked__asks_a_second() -> None:
    verdict = judge(facts(client("a", REFUSED), others=5), PILOT)

    assert verdict.outcome is None
    assert [(ask.kind, ask.key) for ask in verdict.asks] == [(ENVOY, PAY)]


def test_judge__nobody_of_a_kind_was_asked__asks_one_of_it_before_anybody_else_has_it() -> None:
    took = facts(client("a"))
    late = replace(took, others={(GO, PAY): Others(3)})

    asking, steps = judge(late, PILOT), judge(late, STEPS)

    assert asking.asks == (Ask(GO, PAY, frozenset()),)
    assert asking.waits_for == "another client to be asked of grpc-go 1.66"
    assert (steps.outcome, steps.asks) == (PASS, ())


def test_judge__as_many_were_asked_as_may_be__asks_nobody_of_another_kind() -> None:
    many = replace(facts(*(client(f"c-{number}") for number in range(MAX_PILOTS))), others={(GO, PAY): Others(3)})

    assert judge(many, PILOT).outcome is PASS


def test_judge__two_refuse__fails_though_others_could_be_asked() -> None:
    verdict = judge(facts(client("a", REFUSED), client("b", REFUSED), client("c", TAKEN), others=5), PILOT)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset({PAY}))
    assert verdict.reasons == ("2 of 3 that were asked of envoy 1.40 refuse the cluster 'pay'",)


def test_judge__one_to_one_and_a_third_may_be_asked__asks_it() -> None:
    verdict = judge(facts(client("a", REFUSED), client("b", TAKEN), others=1), PILOT)

    assert (verdict.outcome, len(verdict.asks)) == (None, 1)


def test_judge__one_to_one_of_exactly_two__fails() -> None:
    verdict = judge(facts(client("a", REFUSED), client("b", TAKEN)), PILOT)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset({PAY}))


def test_judge__two_take_it_and_one_refuses__is_outvoted_and_told() -> None:
    verdict = judge(facts(client("a", REFUSED), client("b"), client("c"), others=5), PILOT)

    assert verdict.outcome is PASS
    assert "one envoy 1.40 refuses the cluster 'pay', and 2 took it" in verdict.reasons


def test_judge__kinds_are_judged_apart__two_acks_of_one_do_not_outvote_another() -> None:
    verdict = judge(facts(client("a"), client("b"), client("c", REFUSED, kind=GO)), PILOT)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset({PAY}))


def test_judge__one_identity_refuses_with_many_node_ids__has_one_voice() -> None:
    hostile = [client(f"h{number}", REFUSED, identity="evil") for number in range(5)]
    honest = [client("a", identity="one"), client("b", identity="two")]

    assert judge(facts(*hostile, *honest), STEPS).outcome is PASS


def test_judge__one_identity_takes_it_with_many_node_ids__outvotes_nobody() -> None:
    hostile = [client(f"h{number}", identity="evil") for number in range(5)]
    honest = [client("a", REFUSED, identity="one"), client("b", REFUSED, identity="two")]

    assert judge(facts(*hostile, *honest), STEPS).outcome is FAIL


def test_judge__an_identity_has_answered_and_another_was_not_asked__asks_the_other() -> None:
    verdict = judge(facts(client("a", REFUSED, identity="one"), others=3, identities=("one", "two")), PILOT)

    assert [ask.parties for ask in verdict.asks] == [{"one"}]


def test_judge__only_its_own_identity_is_left_to_ask__fails() -> None:
    cohort = client("a", REFUSED, identity="one"), client("b", TAKEN, identity="two")

    assert judge(facts(*cohort, others=3, identities=("one", "two")), PILOT).outcome is FAIL


def test_judge__all_clients_share_an_identity__each_has_its_own_voice() -> None:
    verdict = judge(facts(client("a", REFUSED, identity="one"), others=3, identities=("one",)), PILOT)

    assert (verdict.outcome, len(verdict.asks)) == (None, 1)


def test_judge__most_clients_of_an_identity_take_it__its_word_is_that() -> None:
    cohort = [client(f"a{number}", identity="one") for number in range(9)]

    verdict = judge(facts(*cohort, client("b", REFUSED, identity="one"), client("c", identity="two")), STEPS)

    assert verdict.outcome is PASS


def test_judge__one_name_is_refused__blames_it_alone() -> None:
    cohort = [client(name, {PAY: REFUSED, SHOP: TAKEN}) for name in ("a", "b")]

    assert judge(facts(*cohort), PILOT).blamed == {PAY}


def test_judge__a_response_was_refused_and_not_told_apart__waits_for_that() -> None:
    verdict = judge(facts(client("a", {PAY: UNSURE, SHOP: UNSURE})), PILOT)

    assert (verdict.outcome, verdict.waits_for) == (None, "1 client to answer")


def test_judge__it_is_never_told_apart__fails_and_blames_nobody() -> None:
    verdict = judge(facts(client("a", {PAY: UNSURE, SHOP: UNSURE}, asked_s=LATE)), PILOT)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset())


# --- Lost and gone (R9)


def test_judge__a_pilot_is_lost__another_is_asked() -> None:
    verdict = judge(facts(client("a", SENT, connected=False, losses=1), others=2), PILOT)

    assert (verdict.outcome, len(verdict.asks)) == (None, 1)


def test_judge__a_second_pilot_is_lost__fails_and_blames_what_both_were_sent() -> None:
    cohort = [client(name, SENT, connected=False, losses=1) for name in ("a", "b")]

    verdict = judge(facts(*cohort, others=2), PILOT)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset({PAY}))
    assert verdict.reasons == (
        "streams of envoy 1.40 ended 2 times after they were sent the cluster 'pay' and before they answered",
    )


def test_judge__the_lost_were_sent_several_names__nobody_is_blamed() -> None:
    cohort = [client(name, {PAY: SENT, SHOP: SENT}, connected=False, losses=1) for name in ("a", "b")]

    verdict = judge(facts(*cohort), PILOT)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset())


def test_judge__the_only_client_is_lost__waits_for_it_to_be_back() -> None:
    verdict = judge(facts(client("a", SENT, connected=False, losses=1)), PILOT)

    assert (verdict.outcome, verdict.waits_for) == (None, "1 client to answer")


def test_judge__the_only_client_is_lost_again__fails() -> None:
    assert judge(facts(client("a", SENT, losses=2)), PILOT).outcome is FAIL


def test_judge__the_only_client_never_comes_back__is_inconclusive() -> None:
    verdict = judge(facts(client("a", SENT, connected=False, losses=1, asked_s=LATE), served_s=LATE), PILOT)

    assert verdict.outcome is INCONCLUSIVE


def test_judge__who_was_lost_took_it_when_it_was_back__passes() -> None:
    assert judge(facts(client("a", TAKEN, losses=1)), PILOT).outcome is PASS


def test_judge__another_took_it_after_one_was_lost__passes() -> None:
    assert judge(facts(client("a", SENT, connected=False, losses=1), client("b")), PILOT).outcome is PASS


def test_judge__two_of_hundreds_left_before_they_answered__is_what_happens_to_streams() -> None:
    cohort = [client(f"a{number}") for number in range(300)]
    left = [client(f"b{number}", SENT, connected=False, losses=1, asked_s=LATE) for number in range(2)]

    assert judge(facts(*cohort, *left, served_s=LATE), STEPS).outcome is PASS


def test_judge__everybody_who_had_it_went_away__is_inconclusive() -> None:
    verdict = judge(facts(client("a", UNSENT, connected=False, asked_s=LATE), served_s=LATE), PILOT)

    assert verdict.outcome is INCONCLUSIVE
    assert "1 client that had it went away" in verdict.reasons[0]


# --- Nobody is exposed (R9)


@pytest.mark.parametrize(
    ("policy", "outcome", "waits"),
    [(Unexposed.ASK, INCONCLUSIVE, False), (Unexposed.WAIT, None, True), (Unexposed.PROMOTE, PASS, False)],
)
def test_judge__nobody_asks_for_what_differs__is_as_the_environment_says(
    policy: Unexposed, outcome: Outcome | None, waits: bool
) -> None:
    verdict = judge(facts(client("a", None), client("b", None)), replace(STEPS, unexposed=policy))

    assert (verdict.outcome, bool(verdict.waits_for)) == (outcome, waits)
    if outcome is not None:
        assert "0 of 2 clients in the cohort ask for the cluster 'pay'" in verdict.reasons


@pytest.mark.parametrize(
    ("connected", "reason"),
    [
        (0, "no client is connected to ask for the cluster 'pay'"),
        (3, "no connected client asks for the cluster 'pay'"),
    ],
)
def test_judge__there_is_nobody_to_be_asked__says_whether_anybody_is_connected(connected: int, reason: str) -> None:
    given = replace(facts(), wanted={}, control_streams=Streams(connected))

    verdict = judge(given, replace(PILOT, unexposed=Unexposed.PROMOTE))

    assert (verdict.outcome, verdict.reasons) == (PASS, (reason,))


def test_judge__the_cohort_of_the_last_step_does_not_ask_for_a_name_that_others_ask_for__is_inconclusive() -> None:
    given = facts(client("a"))
    given = replace(given, names=given.names | {SHOP}, wanted={PAY: 1, SHOP: 3})

    assert judge(given, STEPS).reasons == ("nobody of the cohort asks for the cluster 'shop', and others do",)
    assert judge(given, replace(STEPS, last=False)).outcome is PASS


# --- Silence (R10)


def test_judge__a_client_did_not_answer_yet__waits_until_it_is_late() -> None:
    verdict = judge(facts(client("a", SENT)), PILOT)

    assert (verdict.outcome, verdict.waits_for, verdict.left_s) == (None, "1 client to answer", 29.0)


def test_judge__a_pilot_is_silent__is_replaced_once() -> None:
    first, second = (client(name, SENT, asked_s=LATE) for name in ("a", "b"))

    assert len(judge(facts(first, others=2), PILOT).asks) == 1
    assert judge(facts(first, second, others=2), PILOT).outcome is INCONCLUSIVE


def test_judge__a_silent_pilot_was_replaced_by_one_that_took_it__passes() -> None:
    assert judge(facts(client("a", SENT, asked_s=LATE), client("b"), others=2), PILOT).outcome is PASS


@pytest.mark.parametrize(("silent", "outcome"), [(1, PASS), (2, INCONCLUSIVE)])
def test_judge__some_of_a_step_are_silent__passes_up_to_a_tenth(silent: int, outcome: Outcome) -> None:
    took = [client(f"a{number}") for number in range(10 - silent)]
    late = [client(f"b{number}", SENT, asked_s=LATE) for number in range(silent)]

    assert judge(facts(*took, *late, served_s=LATE), STEPS).outcome is outcome


def test_judge__silence_is_never_a_failure() -> None:
    everybody = [client(f"a{number}", UNSENT, asked_s=LATE) for number in range(20)]

    assert judge(facts(*everybody, served_s=LATE), STEPS).outcome is INCONCLUSIVE


# --- The other gates


def test_judge__nothing_could_be_sent_yet__waits_for_the_snapshot() -> None:
    assert judge(facts(client("a", REFUSED), served_s=None), PILOT).waits_for.startswith("the next snapshot")


def test_judge__the_step_goes_on_for_a_while__passes_after_that() -> None:
    bakes = replace(STEPS, bake_s=60.0)

    waiting = judge(facts(client("a")), bakes)
    assert (waiting.outcome, waiting.left_s) == (None, 59.0)
    assert judge(facts(client("a"), served_s=60.0), bakes).outcome is PASS


def test_judge__a_person_has_to_agree__waits_for_that_after_all_else() -> None:
    approves = replace(STEPS, approve=True)

    assert judge(facts(client("a", SENT)), approves).waits_for == "1 client to answer"
    assert judge(facts(client("a")), approves).waits_for == "a person to approve this step"
    assert judge(facts(client("a"), approved=True), approves).outcome is PASS


def test_judge__the_cohort_was_told_a_new_error__fails_and_blames_what_is_its_own() -> None:
    error = NewError(PAY, "XDS2106", 3, own=True)
    verdict = judge(facts(client("a", Answer.ERROR), errors=(error,)), STEPS)

    assert (verdict.outcome, verdict.blamed) == (FAIL, frozenset({PAY}))
    assert "3 clients were told XDS2106 of the cluster 'pay'" in verdict.reasons[0]
    assert judge(facts(client("a"), errors=(error,)), replace(STEPS, errors=False)).outcome is PASS


def test_judge__the_error_is_about_something_else__takes_all_back() -> None:
    error = NewError(SHOP, "XDS2101", 1, own=False)

    assert judge(facts(client("a"), errors=(error,)), STEPS).blamed == frozenset()


@pytest.mark.parametrize(
    ("cohort", "control", "outcome"),
    [
        (Streams(20, 8), Streams(100, 2), FAIL),
        (Streams(20, 1), Streams(100, 2), PASS),
        (Streams(20, 8), Streams(100, 40), PASS),
        (Streams(9, 9), Streams(100, 0), PASS),
    ],
)
def test_judge__streams_of_the_cohort_are_lost__fails_where_that_is_no_chance(
    cohort: Streams, control: Streams, outcome: Outcome
) -> None:
    given = facts(client("a"), cohort_streams=cohort, control_streams=control)

    assert judge(given, replace(STEPS, lost_percent=5)).outcome is outcome
    assert judge(given, STEPS).outcome is PASS


@pytest.mark.parametrize("said", [FAIL, INCONCLUSIVE, PASS])
def test_judge__a_webhook_answered__its_word_counts(said: Outcome) -> None:
    verdict = judge(facts(client("a"), webhooks=(WebhookSaid("https://a/…", said, "since then"),)), STEPS)

    assert verdict.outcome is said
    assert verdict.blamed == frozenset()
    assert any("https://a/… " in reason and reason.endswith(": since then") for reason in verdict.reasons)


def test_judge__webhooks_and_the_answers_differ__the_worst_counts() -> None:
    said = [WebhookSaid("a", each) for each in (PASS, INCONCLUSIVE, FAIL)]

    assert judge(facts(client("a"), webhooks=tuple(said)), STEPS).outcome is FAIL
    assert judge(facts(client("a"), webhooks=tuple(said[:2])), STEPS).outcome is INCONCLUSIVE
    assert judge(facts(client("a", REFUSED), webhooks=tuple(said[:1])), STEPS).outcome is FAIL


def test_judge__a_webhook_is_to_answer__is_asked_when_nothing_else_is_waited_for() -> None:
    unasked, asked = WebhookSaid("https://a/…"), WebhookSaid("https://b/…", left_s=7.0)

    early = judge(facts(client("a", SENT), webhooks=(unasked,)), STEPS)
    due = judge(facts(client("a"), webhooks=(unasked, asked)), STEPS)
    under_way = judge(facts(client("a"), webhooks=(asked,)), replace(STEPS, approve=True))

    assert (early.outcome, early.consults) == (None, False)
    assert (due.outcome, due.consults) == (None, True)
    assert due.waits_for == "the answer of the webhook https://a/… and the webhook https://b/…"
    assert (under_way.outcome, under_way.consults, under_way.left_s) == (None, False, 7.0)
    assert under_way.waits_for == "the answer of the webhook https://b/…"


@pytest.mark.parametrize("said", [FAIL, INCONCLUSIVE, PASS, None])
def test_judge__before_the_first_step__the_word_of_webhooks_alone_counts(said: Outcome | None) -> None:
    verdict = judge(facts(begun=False, served_s=None, webhooks=(WebhookSaid("a", said),)), STEPS)

    assert (verdict.outcome, verdict.consults) == (said, said is None)


def test_judge__somebody_takes_it_and_does_not_use_it__is_told_and_decides_nothing() -> None:
    verdict = judge(facts(client("a"), warming=(NotInUse(PAY, "1 client took it and did not ask"),)), STEPS)

    assert verdict.outcome is PASS
    assert "1 client took it and did not ask" in verdict.reasons


# --- All of it


def test_judge__facts_are_read_again__are_the_same() -> None:
    given = facts(
        client("a", {PAY: UNSURE, SHOP: SENT}, identity="one", losses=1),
        others=3,
        identities=("one", "two"),
        cohort_streams=Streams(3, 1),
        errors=(NewError(PAY, "XDS2106", 3, own=True),),
        webhooks=(WebhookSaid("https://a/…", PASS, "fine"), WebhookSaid("b", left_s=3.0)),
        warming=(NotInUse(PAY, "words"),),
        begun=False,
        approved=True,
    )

    assert facts_from_json(facts_json(given)) == given


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        (client("a"), ClientState.TAKEN),
        (client("a", {PAY: TAKEN, SHOP: REFUSED}), ClientState.REFUSED),
        (client("a", {PAY: TAKEN, SHOP: SENT}), ClientState.WAITING),
        (client("a", SENT, asked_s=LATE), ClientState.SILENT),
        (client("a", SENT, connected=False, losses=1), ClientState.LOST),
        (client("a", SENT, connected=False), ClientState.GONE),
        (client("a", None), ClientState.UNEXPOSED),
        (client("a", Answer.ERROR), ClientState.UNEXPOSED),
    ],
)
def test_state_of__a_client__is_the_worst_of_its_answers(asked: object, state: ClientState) -> None:
    assert state_of(asked, PILOT) is state  # type: ignore[arg-type]  # parametrised


def test_judge__an_empty_step__never_fails() -> None:
    assert judge(Facts(1.0, frozenset(), {}), Rules(pilot=True, unexposed=Unexposed.PROMOTE)).outcome is PASS
