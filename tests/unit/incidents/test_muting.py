"""Which words a mute covers."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.incidents.muting import MAX_WORDINGS, first_new, joined, wording
from xdscore.client_kinds import ClientFamily

WORDINGS = st.lists(st.sampled_from([f"{number:012x}" for number in range(80)]), max_size=20)


def test_wording__same_words_of_another_family__differ() -> None:
    assert wording(ClientFamily.ENVOY, "no path") == wording(ClientFamily.ENVOY, "no path")
    assert len({wording(family, "no path") for family in ClientFamily}) == len(ClientFamily)
    assert wording(ClientFamily.ENVOY, "no path") != wording(ClientFamily.ENVOY, "no host")


@given(st.lists(WORDINGS, max_size=8), WORDINGS)
def test_wordings__heard_in_any_order__only_what_was_never_heard_is_news(
    heard: list[list[str]], said: list[str]
) -> None:
    known = ""
    for each in heard:
        known = joined(known, each)
    ever = {word for each in heard for word in each}

    new = first_new(known, said)

    assert len(known.split()) == min(len(ever), MAX_WORDINGS)
    if len(ever) >= MAX_WORDINGS:
        assert new is None
    else:
        assert new == next((each for each in said if each not in ever), None)
