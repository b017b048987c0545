"""The search box and the palette understand commands: by table, and whatever else is typed."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.console.commands import COMMANDS, Intent, Verb, intent_of, suggestions_for

UNDERSTOOD = {
    "quarantine billing": Intent(Verb.QUARANTINE, "billing"),
    "Quarantine cluster billing in prod": Intent(Verb.QUARANTINE, "billing", type="cluster", environment="prod"),
    "release billing": Intent(Verb.RELEASE, "billing"),
    "explain echo for client-7": Intent(Verb.EXPLAIN, "echo", client="client-7"),
    "why listener echo for client-7 in prod": Intent(
        Verb.EXPLAIN, "echo", type="listener", client="client-7", environment="prod"
    ),
    "explain echo": Intent(Verb.EXPLAIN, "echo"),
    "undo 123": Intent(Verb.UNDO, "123"),
    "undo change #123": Intent(Verb.UNDO, "123"),
    "take back 0b6c4f1e": Intent(Verb.UNDO, "0b6c4f1e"),
    "compare 5 7": Intent(Verb.COMPARE, "5", to="7"),
    "diff 5 and live": Intent(Verb.COMPARE, "5", to="live"),
    "compare snapshot 5": Intent(Verb.COMPARE, "5", to="live"),
    "roll back to 5": Intent(Verb.ROLL_BACK, "5"),
    "rollback 5": Intent(Verb.ROLL_BACK, "5"),
    "  go   to\tIncidents ": Intent(Verb.GO, "incidents"),
    "open change sets in prod": Intent(Verb.GO, "change sets", environment="prod"),
    "new listener": Intent(Verb.NEW, "listener"),
    "edit route edge": Intent(Verb.EDIT, "edge", type="route"),
    "allow pay*": Intent(Verb.ALLOW, "pay*"),
    "deny cluster pay": Intent(Verb.DENY, "pay", type="cluster"),
    "freeze": Intent(Verb.FREEZE),
    "where does https://shop.example/pay go": Intent(Verb.WHERE, "https://shop.example/pay"),
    "where does shop.example/pay go? in prod": Intent(Verb.WHERE, "shop.example/pay", environment="prod"),
    "where does /pay go for client-7": Intent(Verb.WHERE, "/pay", client="client-7"),
    "freeze prod": Intent(Verb.FREEZE, environment="prod"),
    "freeze prod 2h deploy night": Intent(Verb.FREEZE, "deploy night", to="2h", environment="prod"),
    "freeze 30min": Intent(Verb.FREEZE, to="30min"),
    "freeze 3D Inventory in prod": Intent(Verb.FREEZE, "Inventory", to="3d", environment="prod"),
    "freeze 2h 8h": Intent(Verb.FREEZE, to="8h", environment="2h"),
    "why does client-7 not get echo?": Intent(Verb.EXPLAIN, "echo", client="client-7"),
    "why does client-7 have cluster echo": Intent(Verb.EXPLAIN, "echo", type="cluster", client="client-7"),
}
NO_COMMANDS = (
    *("", " ", "?", "billing", "quarantine", "explain", "explain echo for", "explain for x", "undo", "undo 1 2"),
    *("compare", "compare 5 6 7", "compare pay 7", "roll back to", "roll back to pay", "go to", "new", "undo #"),
    *(
        "freeze everything now",
        "quarantined",
        "newlistener",
        "roll back",
        "freeze _",
        "freeze all of it 2h",
        "freeze _ 2h",
        "why does get echo",
        "why does client-7 not get",
        "why does it work",
        "where does it",
        "where does a b go",
        "where does a go to",
    ),
)


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_intent__of_a_whole_command__is_what_it_says(text: str) -> None:
    assert intent_of(text) == UNDERSTOOD[text]


@pytest.mark.parametrize("text", NO_COMMANDS)
def test_intent__of_a_part_or_of_other_words__is_none(text: str) -> None:
    assert intent_of(text) is None


def test_table__has_every_verb_once_and_fills_in_how_each_begins() -> None:
    assert [each.verb for each in COMMANDS] == list(Verb)
    for command in COMMANDS:
        assert command.usage.lower().startswith(command.fill.strip())


@pytest.mark.parametrize("text", ["", "  ", "?", " ? "])
def test_suggestions__nothing_typed_or_a_question__are_all_commands(text: str) -> None:
    assert [each.usage for each in suggestions_for(text)] == [each.usage for each in COMMANDS]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("qua", "quarantine NAME"),
        ("QUARANTINE", "quarantine NAME"),
        ("ro", "roll back to SNAPSHOT"),
        ("undo", "undo CHANGE"),
        ("explain echo for", "explain NAME for CLIENT"),
        ("compare pay", "compare SNAPSHOT SNAPSHOT"),
    ],
)
def test_suggestions__while_a_command_is_typed__say_how_it_goes_on(text: str, first: str) -> None:
    found = suggestions_for(text)

    assert found[0].usage == first
    assert (found[-1].fill, found[-1].searches) == (text, True)


def test_suggestions__of_a_whole_command__say_no_more_of_how_it_is_written() -> None:
    assert [each.searches for each in suggestions_for("quarantine billing")] == [True]


@given(st.text() | st.lists(st.sampled_from([*" ".join(UNDERSTOOD).split(), "in", "for", "?"])).map(" ".join))
@example("x" * 100_000)
@example("explain \x00 for \ud800 in -")
def test_any_text__gives_suggestions_and_never_an_error(text: str) -> None:
    found, intent = suggestions_for(text), intent_of(text)

    assert found
    assert all(each.usage and each.says for each in found)
    if intent is not None:
        assert intent == intent_of(f" {text} ")
        assert intent.what or intent.verb is Verb.FREEZE
