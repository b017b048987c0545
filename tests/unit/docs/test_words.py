"""The glossary's banned words are found where people read them, with their line, and nowhere else."""

import pytest

from scripts.words import banned, found_in, problems, sentences_of

GLOSSARY = """
| word | means | never |
|---|---|---|
| **refuse, refusal** | By a NACK | `reject`, `rejected` |
| **last good** | Acknowledged last | `last known good` |
| **epoch** | A number | |
"""
WORDS = {"reject": "refuse, refusal", "rejected": "refuse, refusal", "last known good": "last good"}


def test_banned__rows_of_the_glossary__each_word_with_the_one_to_use() -> None:
    assert banned(GLOSSARY) == WORDS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Clients Rejected it.", [(1, "Rejected")]),
        ("one\ntwo, rejected\nthree: last known good", [(2, "rejected"), (3, "last known good")]),
        ('{# rejected #}<b class="rejected">{{ rejected }}</b>{% if rejected %}', []),
        ("{# a\nb #}rejected", [(2, "rejected")]),
        ("`rejected`, rejected_by and a/rejected.py", []),
        ("```\nrejected\n```\nreject", [(4, "reject")]),
        ("[how](rejected.md) it is rejectedly", []),
        ("Cluster 'pay' is withheld: rejected by clients.", []),
    ],
)
def test_found_in__a_text__words_in_its_prose_with_their_lines(text: str, found: list[tuple[int, str]]) -> None:
    assert list(found_in(text, WORDS)) == found


@pytest.mark.parametrize(
    ("docstrings", "found"),
    [(False, [(3, "read {} by people")]), (True, [(1, "What it is."), (3, "read {} by people")])],
)
def test_sentences__of_a_module__its_constants_and_where_they_are_read_its_docstrings(
    docstrings: bool, found: list[tuple[int, str]]
) -> None:
    source = '"""What it is."""\nword = "rejected"\ntext = "read {} by people".format(word)\n'

    assert sorted(sentences_of(source, docstrings=docstrings)) == found


def test_this_checkout__every_text__uses_the_words_of_the_glossary() -> None:
    assert list(problems()) == []
