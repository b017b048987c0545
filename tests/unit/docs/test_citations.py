"""What is cited is found, in each form that is in use, and what leads nowhere is told with its place."""

from pathlib import Path

import pytest

from scripts.citations import Citation, citations_of, entries_of, keys_of, pages_of, problems_of, rule_problems

ROOT = Path(__file__).resolve().parents[3]
MUST = "<!-- every entry names its code or its test -->\n"


def cited(text: str, suffix: str = ".py") -> list[tuple[str, str]]:
    """Document and key of each citation."""
    return [(each.document, each.key) for _, each in citations_of(text, suffix)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(decisions D6)", [("decisions", "D6")]),
        (
            "decisions D6a, C30; reliability.md part (e)",
            [("decisions", "D6a"), ("decisions", "C30"), ("reliability", "(e)")],
        ),
        ("decisions part 7", [("decisions", "part 7")]),
        ("two decisions 7 times", []),
        ("texts.md 9.5 and 9.8", [("texts", "9.5"), ("texts", "9.8")]),
        ("texts.md section 8, decisions A4", [("texts", "8"), ("decisions", "A4")]),
        ("texts.md F3, F4 and F7", [("texts", "F3"), ("texts", "F4"), ("texts", "F7")]),
        ("texts.md W2", [("texts", "W2")]),
        ("(reliability (e), C11)", [("reliability", "(e)"), ("reliability", "C11")]),
        ("Reliability threat 6: medians", [("threat", "6")]),
        ("reliability finding 9", [("reliability", "finding 9")]),
        ("(reliability N1 to N8, threat 14)", [("reliability", "N1"), ("reliability", "N8"), ("threat", "14")]),
        ("its reliability matters", []),
        ("protocol.md C4", [("protocol", "C4")]),
        ("(protocol.md section C)", [("protocol", "C")]),
        ("(protocol.md A to F)", [("protocol", "A"), ("protocol", "F")]),
        ("protocol.md D1, A88", [("protocol", "D1")]),
        ("docs/reference/protocol.md, F18a", [("protocol", "F18a")]),
        ("interfaces.md sections 4 and 7", [("interfaces", "4"), ("interfaces", "7")]),
        ("interfaces.md: off loopback", [("interfaces", "")]),
        ("clients.md section 2.5).", [("clients", "2.5")]),
        ("dependencies.md fact 8.", [("dependencies", "8")]),
        ("performance.md laws 2 and 3", [("performance", "law 2"), ("performance", "law 3")]),
        ("architecture.md law 2", [("law", "law 2")]),
        ("law 4, P8", [("law", "law 4"), ("law", "P8")]),
        ("threats 2, 5, 6 and 7", [("threat", "2"), ("threat", "5"), ("threat", "6"), ("threat", "7")]),
        ("C6, I5 (F32)", [("", "C6"), ("", "I5"), ("", "F32")]),
        ("gRFC A88, XDS1021, C-core, v1.2, P-256 and `C4`", []),
        ("is cited as `decisions D6`", [("decisions", "D6")]),
        ("half of it (reliability\n# P2).", [("reliability", "P2")]),
    ],
)
def test_citations__in_a_comment__are_read_in_every_form(text: str, found: list[tuple[str, str]]) -> None:
    assert cited(f"# {text}\n") == found


@pytest.mark.parametrize(
    ("text", "suffix", "found"),
    [
        ('"""A docstring (C4)."""\n', ".py", [("", "C4")]),
        ('x = "a string, C4, reliability N2"\n', ".py", []),
        ('assert x, "D13: what stands in"\n', ".py", [("", "D13")]),
        ('y = _limit(1, "C4", "(e), C12", "C30, F28")\n', ".py", [("", "C30"), ("", "F28")]),
        ("Table 5 of H2 and (C4, I3), see reliability N2.\n", ".md", [("", "C4"), ("", "I3"), ("reliability", "N2")]),
        ("```\nreliability N2\n```\n", ".md", []),
        ("{# threat 15 #}<p>H2</p>\n", ".html", [("threat", "15")]),
    ],
)
def test_citations__by_kind_of_file__are_read_where_people_cite(
    text: str, suffix: str, found: list[tuple[str, str]]
) -> None:
    assert cited(text, suffix) == found


def test_citation__of_a_title__is_found_by_its_words(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/architecture.md").write_text("# A\n\n## Follow a change\n")

    entries = entries_of(tmp_path)

    [(_, there)] = citations_of('# (architecture.md, "Follow a\n# change")\n', ".py")
    assert not entries.holds(Citation("architecture", "", "Follow a stream"))
    assert entries.holds(Citation(there.document, there.key, there.title.replace("\n", " ")))


def test_keys__of_a_document__are_those_of_sections_entries_and_rows() -> None:
    lines = (
        *("## 4. Title", "### 2.1. Title", "## A. Title", "## (e). Limits", "### D6a. Title", "### Part 7. Title"),
        *("* **S1** A rule.", "* **law 2** A law.", "* **fact 8** A fact.", "* **What follows** No rule."),
        *("| F10, F11 | fault |", "| 3 | row |", "```", "* **S9** code", "```"),
    )
    text = "\n".join(lines)

    assert list(keys_of(text)) == ["4", "2.1", "A", "(e)", "D6a", "part 7", "S1", "law 2", "8", "F10", "F11"]
    assert "3" in keys_of(text, numbers=True)


def test_problems__in_a_tree__are_told_with_document_and_place(tmp_path: Path) -> None:
    (tmp_path / "docs/design").mkdir(parents=True)
    (tmp_path / "docs/design/decisions.md").write_text("### D6. Fences\n")
    (tmp_path / "xdscore").mkdir()
    (tmp_path / "xdscore/a.py").write_text(
        '"""Fences (decisions D6).\n\nAnd D7; docs/none.md.\n"""\n\n# decisions D8\n'
    )

    problems = [(problem.place, problem.text) for problem in problems_of(tmp_path)]

    assert problems == [
        ("xdscore/a.py:3", "D7 leads nowhere."),
        ("xdscore/a.py:6", "decisions D8 leads nowhere."),
        ("xdscore/a.py:3", "There is no docs/none.md."),
    ]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("* **S1** A rule. — code: `xdscore.decision.decide`", ""),
        ("* **S1** A rule.\n  — test:\n  `tests/unit/docs/test_citations.py::cited`", ""),
        ("* **S1** A rule. — code: `pyproject.toml`", ""),
        ("* **S1** A rule. — none: a promise about people.", ""),
        ("* **S1** A rule.", "S1 names neither code nor test."),
        ("* **S1** A rule. — code: `xdscore.decision.nope`", "S1 names xdscore.decision.nope, which does not exist."),
        ("* **S1** A rule. — test: `tests/x.py::y`", "S1 names tests/x.py::y, which does not exist."),
        ("* **S1** A. — none: x.\n* **S1** B. — none: x.", "S1 is there twice."),
    ],
)
def test_rule__without_what_it_must_name__is_a_problem(entry: str, problem: str) -> None:
    found = [each.text for each in rule_problems(MUST + entry, "x.md", ROOT)]

    assert found == [problem] * bool(problem)


def test_id__behind_another__is_of_its_document_or_a_bare_one(tmp_path: Path) -> None:
    (tmp_path / "docs/design").mkdir(parents=True)
    (tmp_path / "docs/design/texts.md").write_text("* **W1** Home\n* **W2** Explain\n* **F4** Words\n")
    (tmp_path / "docs/design/protocol.md").write_text("* **C4** Wildcards\n")
    entries = entries_of(tmp_path)

    found = [each for _, each in citations_of("# texts.md W1, F4, C4 and F5; F4\n", ".py")]

    assert [entries.holds(each) for each in found] == [True, True, True, False, False]


def test_rule__of_a_document_that_demands_nothing__may_name_nothing() -> None:
    assert list(rule_problems("* **S1** A rule.", "x.md", ROOT)) == []


def test_pages__that_prose_names__are_read_but_for_documents_with_a_name_of_their_own() -> None:
    text = '"""See docs/scale.md, texts.md and docs/reference/codes.md."""\nx = "y.md"\n'

    assert [page for _, page in pages_of(text)] == ["docs/scale.md", "docs/reference/codes.md"]
