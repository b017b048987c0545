"""The words that xdsctl offers for a choice are those that the server takes; it may not import it to know them."""

from enum import Enum

import pytest

from controlplane.api.views.schema import schema
from xdsctl.commands import changes, search

_CHOICES: tuple[tuple[str, str, type[Enum]], ...] = (
    ("/search", "kind", search.Kind),
    ("/changes", "kind", changes.Kind),
    ("/changes", "findings", changes.Findings),
)


@pytest.mark.parametrize(("path", "parameter", "offered"), _CHOICES)
def test_choice__of_the_command_line__has_the_words_of_the_api(path: str, parameter: str, offered: type[Enum]) -> None:
    [taken] = [each for each in schema()["paths"][f"/api/v1{path}"]["get"]["parameters"] if each["name"] == parameter]

    words = taken["schema"].get("items", taken["schema"])["enum"]

    assert {each.value for each in offered} == set(words)
