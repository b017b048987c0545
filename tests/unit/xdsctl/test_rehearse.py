"""What xdsctl says of a rehearsal, and with which exit status it ends."""

import pytest

from xdsctl.commands.rehearse import outcome_of
from xdsctl.exits import Exit, JsonObject


def row(state: str, *, node: str = "edge", name: str = "pay", message: str = "") -> JsonObject:
    return {
        "client": f"id-{node}",
        "node_id": node,
        "kind": "envoy 1.40",
        "type": "cluster",
        "name": name,
        "state": state,
        "message": message,
    }


@pytest.mark.parametrize(
    ("verdict", "rows", "status", "text"),
    [
        ("taken", [row("taken")], Exit.DONE, "The client took all that it asks for. Nothing of it is left."),
        (
            "taken",
            [row("taken"), row("taken", node="other")],
            Exit.DONE,
            "Each of 2 clients took all that it asks for. Nothing of it is left.",
        ),
        (
            "refused",
            [row("taken"), row("refused", name="shop", message="bad path"), row("refused", node="other")],
            Exit.NO,
            "edge refuses cluster 'shop' and 1 more: bad path",
        ),
        (
            "refused",
            [row("taken")],
            Exit.NO,
            "A change of it would be refused: blocking route cases would not hold any more.",
        ),
        (
            "inconclusive",
            [row("silent", message="It did not answer within the time.")],
            Exit.UNDECIDED,
            "edge did not answer to all of it: It did not answer within the time.",
        ),
        (
            "inconclusive",
            [row("taken"), row("not_asked", node="other")],
            Exit.UNDECIDED,
            "other asks for nothing of it, so it proves nothing.",
        ),
        (
            "inconclusive",
            [row("taken"), row("not_asked", name="shop")],
            Exit.UNDECIDED,
            "Not all of it could be sent; the messages say why.",
        ),
    ],
)
def test_outcome__verdict__is_the_exit_status_and_a_sentence(
    verdict: str, rows: list[JsonObject], status: Exit, text: str
) -> None:
    outcome = outcome_of({"verdict": verdict, "results": rows})

    assert (outcome.exit_status, outcome.text) == (status, text)
