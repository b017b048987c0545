"""What xdsctl says of a change set, also where others wrote something hostile into it."""

import pytest

from xdsctl.change_sets import COLUMNS, standing, summary
from xdsctl.exits import JsonObject
from xdsctl.output import Printer

REVIEW: JsonObject = {
    "author": "kim",
    "verdict": "approved",
    "text": "fine",
    "version": 2,
    "counts": True,
    "type": "",
    "name": "",
    "line": None,
    "at": "2026-07-01T12:00:00Z",
}
SET: JsonObject = {
    "id": "s",
    "environment": "prod",
    "title": "more time",
    "message": "",
    "state": "review",
    "version": 2,
    "authors": ["dana", "lee"],
    "resource_count": 2,
    "access_count": 0,
    "moved_count": 0,
    "approvals": 1,
    "approvals_needed": 2,
    "review_required": True,
    "not_before": None,
    "expires": None,
    "waits_for": None,
    "scheduled_by": None,
    "published_by": None,
    "changes": [],
    "edited_at": "2026-07-01T12:00:00Z",
    "diff": [
        {"type": "cluster", "name": "pay", "action": "updated", "fields": [{"pointer": "/a"}], "base": 1},
        {"type": "cluster", "name": "shop", "action": "updated", "fields": [], "base": 1},
    ],
    "access": [],
    "moved": [],
    "findings": [],
    "loss": None,
    "reviews": [REVIEW],
    "allowed": ["edit", "approve"],
}
HOSTILE = "a\x1b[2J\nstate       published\u202e"


def lines_of(**members: object) -> list[str]:
    return summary({**SET, **members}).splitlines()


def test_summary__in_review__says_what_it_does_who_approved_it_and_what_is_lacking() -> None:
    lines = lines_of()

    assert lines[0] == "change set  s in prod"
    assert lines[2].startswith("state       review, version 2, edited ")
    assert lines[3:7] == [
        "author      dana, lee",
        "approvals   1 of 2 approvals, without which it cannot be published",
        "updated     cluster/pay",
        "unchanged   cluster/shop",
    ]
    assert lines[7].startswith("approved    kim, ")
    assert lines[7].endswith(" ago, at version 2")
    assert lines[8:] == ["            fine", "possible    edit, approve"]


@pytest.mark.parametrize(
    "members",
    [{"review_required": False}, {"approvals": 2}, {"state": "published"}],
    ids=["not required", "enough", "published"],
)
def test_summary__nothing_lacks__it_is_not_said(members: JsonObject) -> None:
    assert not any("cannot be published" in line for line in lines_of(**members))


def test_summary__stale__says_what_moved_by_whom_and_which_approval_is_void() -> None:
    moved = [
        {"type": "cluster", "name": "pay", "from": 1, "to": 2, "author": "eve", "change": "c"},
        {"type": "cluster", "name": "new", "from": None, "to": 1, "author": "eve", "change": "c"},
        {"type": "cluster", "name": "old", "from": 3, "to": None, "author": "", "change": ""},
    ]

    lines = lines_of(state="stale", moved=moved, reviews=[{**REVIEW, "counts": False}])

    assert [line for line in lines if line.startswith("moved")] == [
        "moved       cluster/pay: r1 -> r2, by eve in change c",
        "moved       cluster/new: none -> r1, by eve in change c",
        "moved       cluster/old: r3 -> deleted",
    ]
    assert any(line.endswith("at version 2, which does not count any more") for line in lines)


def test_summary__scheduled_and_commented__says_when_by_whom_and_where() -> None:
    comment = {**REVIEW, "verdict": "comment", "counts": False, "type": "cluster", "name": "pay", "line": 3}

    lines = lines_of(
        not_before="2027-01-01T00:00:00Z",
        expires="2027-02-01T00:00:00Z",
        scheduled_by="dana",
        waits_for="It is due, but the environment is on hold: a drill",
        message="for the sale",
        reviews=[comment],
    )

    assert "message     for the sale" in lines
    assert "not before  2027-01-01T00:00:00Z" in lines
    assert "expires     2027-02-01T00:00:00Z" in lines
    assert "scheduled   by dana" in lines
    assert "waits for   It is due, but the environment is on hold: a drill" in lines
    assert any(line.startswith("said        kim of cluster/pay, line 3, ") for line in lines)
    assert not any("does not count" in line for line in lines)


def test_summary__findings_and_a_loss__are_told_with_what_they_are_about() -> None:
    findings = [
        {"code": "XDS2", "severity": "warning", "detail": "A.", "resource": {"type": "secret", "name": "tok"}},
        {"code": "XDS3", "severity": "error", "detail": "B."},
    ]
    loss = {"clients": 0, "kinds": {}, "names": [], "who": [], "connected": 3, "doubtful": 0, "truncated": False}
    who = [{"client": "i", "node_id": "edge-1", "kind": "envoy 1.40"}]
    names = [{"type": "cluster", "name": "old", "clients": 1}]

    lines = lines_of(findings=findings, loss={**loss, "clients": 1, "kinds": {"x": 1}, "names": names, "who": who})

    assert "warning     XDS2: secret/tok: A." in lines
    assert "error       XDS3: B." in lines
    assert "lost        1 of 3 connected clients would lose something (1 x)." in lines
    assert "lost        What: cluster/old (1)" in lines
    assert not any(line.startswith("lost") for line in lines_of(loss=loss))


def test_summary__of_what_was_published__names_who_and_the_change() -> None:
    lines = lines_of(state="published", published_by="dana", changes=["c"])

    assert "published   by dana" in lines
    assert "change      c" in lines


def test_summary__what_others_wrote__makes_no_line_of_its_own_and_nothing_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    finding = {
        "code": "XDS1",
        "severity": "error",
        "detail": HOSTILE,
        "resource": {"type": "cluster", "name": HOSTILE},
    }
    row = {
        **SET,
        "title": HOSTILE,
        "message": HOSTILE,
        "authors": [HOSTILE],
        "scheduled_by": HOSTILE,
        "published_by": HOSTILE,
        "waits_for": HOSTILE,
        "diff": [{"type": "cluster", "name": HOSTILE, "action": "created", "base": None}],
        "moved": [{"type": "cluster", "name": HOSTILE, "from": 1, "to": 2, "author": HOSTILE, "change": "c"}],
        "findings": [finding],
        "reviews": [{**REVIEW, "author": HOSTILE, "text": HOSTILE, "type": "cluster", "name": HOSTILE}],
    }

    Printer(color=False).text(summary(row))
    Printer(color=False).rows([row], COLUMNS, lambda each: str(each["id"]))

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert [line for line in out.splitlines() if line.startswith("state")] == [
        line for line in lines_of() if line.startswith("state")
    ]
    assert out.count("\\u001b[2J") == 14 + 2  # in the summary, and in the row's columns AUTHOR and TITLE


def test_standing__in_one_line() -> None:
    assert standing(SET) == "change set s: review, version 2, 1 of 2 approvals"
    assert standing({**SET, "approvals_needed": 1}).endswith("1 of 1 approval")


def test_summary__of_rules_and_groups__says_what_becomes_of_each() -> None:
    rule = {"effect": "deny", "pattern": "pay*\x1b[2J"}
    access = [
        {"type": "group", "name": "edge", "action": "created", "before": None, "after": {"key": "edge"}},
        {"type": "rule", "name": "12", "action": "updated", "before": rule, "after": rule},
        {"type": "rule", "name": "new-1", "action": "created", "before": None, "after": rule},
        {"type": "rule", "name": "7", "action": "deleted", "before": rule, "after": None},
    ]

    lines = lines_of(access=access)

    assert [line for line in lines if "/" in line and ("rule" in line or "group" in line)] == [
        "created     group/edge",
        "unchanged   rule/12: deny pay*\\u001b[2J",
        "created     rule/new-1: deny pay*\\u001b[2J",
        "deleted     rule/7",
    ]
