"""`Did you mean …?` of commands and options, for which no server is asked; names: tests/api."""

import pytest

from tests.support.xdsctl import USAGE, Xdsctl
from xdsctl.nearest import did_you_mean


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        ("rolout status", "Did you mean 'rollout', 'rollouts'?"),
        ("rollout histroy", "Did you mean 'history'?"),
        ("get --ownr me", "Did you mean '--owner'"),
        ("get cluster --ouptut json", "Did you mean '--output'?"),
        ("apply --filname x", "Did you mean '--filename'"),
        ("--servr http://x get", "Did you mean '--server'?"),
    ],
)
def test_mistyped__command_or_option__is_asked_about(arguments: str, question: str) -> None:
    said = Xdsctl({})(*arguments.split())

    assert said.status == USAGE
    assert question in said.err


def test_mistyped__like_nothing__is_not_guessed_at() -> None:
    said = Xdsctl({})("get", "--zzzzzz")

    assert said.status == USAGE
    assert "Did you mean" not in said.err
    assert "No such option: --zzzzzz" in said.err


def test_did_you_mean__likeness__two_at_most_and_never_the_word_itself() -> None:
    assert did_you_mean("pay", ["pay"]) == ""
    assert did_you_mean("payd", ["pay", "paid", "payed", "shop"]) == " Did you mean 'payed' or 'pay'?"
    assert did_you_mean("x" * 100_000, ["y" * 250, "pay"]) == ""
