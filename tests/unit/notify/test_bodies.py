"""What receivers are sent: in the form that each service documents, within its limits, and nothing acts there."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.notify.bodies import (
    Digest,
    alert_key,
    digest_words,
    opsgenie_alert,
    opsgenie_close,
    pagerduty_resolve,
    pagerduty_trigger,
    slack_body,
)
from controlplane.notify.catalogue import Severity
from controlplane.notify.models import Notification
from controlplane.notify.schedules import Every

URL = "https://parley.example"
LINK = f"{URL}/incidents/1"
HOSTILE = "<!channel> <https://evil.example|here> & *bold* `code`"


def told(**more: Any) -> Notification:
    given: dict[str, Any] = {
        "at": datetime(2026, 11, 28, 7, tzinfo=UTC),
        "kind": "incident.opened",
        "environment": "prod",
        "subject": "incident/1",
        "severity": Severity.PAGE.value,
        "title": "Cluster 'pay' is refused in 'prod'",
        "text": "3 of 3 envoy clients refuse it.",
        "link": LINK,
    }
    return Notification(**{**given, **more})


def test_slack__of_a_message__has_a_button_that_leads_to_its_page() -> None:
    body: Any = slack_body(told())

    section, context, actions = body["blocks"]
    assert section["text"] == {
        "type": "mrkdwn",
        "text": "*Cluster 'pay' is refused in 'prod'*\n3 of 3 envoy clients refuse it.",
    }
    assert context["elements"][0]["text"] == "urgent · prod · incident.opened"
    [button] = actions["elements"]
    assert (actions["type"], button["type"], button["url"]) == ("actions", "button", LINK)
    assert button["text"] == {"type": "plain_text", "text": "Open in Parley"}
    # What services show that read the text alone.
    assert body["text"] == f"{section['text']['text']}\n{LINK}"


def test_slack__of_a_message_without_a_page__has_no_button() -> None:
    body: Any = slack_body(told(link="", environment=""))

    assert [block["type"] for block in body["blocks"]] == ["section", "context"]


def test_slack__hostile_words__neither_link_nor_mention_nor_format_in_text_or_blocks() -> None:
    body: Any = slack_body(told(title=HOSTILE, text=HOSTILE))

    said = body["blocks"][0]["text"]["text"]
    for text in (body["text"], said):
        assert "<" not in text
        assert "`" not in text
        assert "&lt;!channel&gt;" in text
        assert text.count("*") == 2  # those around the title


@pytest.mark.parametrize("character", ["<", "&", "x"])
def test_slack__more_than_a_section_takes__is_cut_between_characters(character: str) -> None:
    body: Any = slack_body(told(title=character * 500, text=character * 2_000))

    said = body["blocks"][0]["text"]["text"]
    assert len(said) <= 3_000
    assert len(said) > 2_400
    assert not said.rpartition("&")[2] or character == "x" or said.endswith(";")


def test_alert_key__of_what_is_about_the_same__is_one_and_of_others_another() -> None:
    key = alert_key(told(), public_url=URL)

    assert alert_key(told(kind="incident.resolved", title="x", text="y"), public_url=URL) == key
    others = [told(subject="incident/2"), told(environment="dev"), told(kind="hold.set")]
    assert key not in [alert_key(each, public_url=URL) for each in others]
    assert alert_key(told(), public_url="https://other.example") != key
    # PagerDuty takes 255 characters, Opsgenie 512, and this stands in a path.
    assert len(alert_key(told(subject="€/?" * 400), public_url=URL)) == len(key) == 71
    assert key.replace("-", "").isalnum()


def test_pagerduty__trigger_and_resolve__are_events_of_its_api() -> None:
    event: Any = pagerduty_trigger(told(), routing_key="R" * 32, dedup_key="k")

    assert {name: event[name] for name in ("routing_key", "event_action", "dedup_key")} == {
        "routing_key": "R" * 32,
        "event_action": "trigger",
        "dedup_key": "k",
    }
    payload = event["payload"]
    assert payload["summary"] == "Cluster 'pay' is refused in 'prod'"
    assert (payload["source"], payload["severity"]) == ("prod", "critical")
    assert payload["timestamp"] == "2026-11-28T07:00:00+00:00"
    assert payload["custom_details"]["text"] == "3 of 3 envoy clients refuse it."
    assert event["links"] == [{"href": LINK, "text": "Open in Parley"}]
    assert pagerduty_resolve(routing_key="R", dedup_key="k") == {
        "routing_key": "R",
        "event_action": "resolve",
        "dedup_key": "k",
    }


@pytest.mark.parametrize(
    ("severity", "word", "priority"),
    [(Severity.PAGE, "critical", "P1"), (Severity.NORMAL, "warning", "P3"), (Severity.QUIET, "info", "P5")],
)
def test_alert__of_each_urgency__says_so_in_the_words_of_the_service(
    severity: Severity, word: str, priority: str
) -> None:
    event: Any = pagerduty_trigger(told(severity=severity.value), routing_key="R", dedup_key="k")

    assert event["payload"]["severity"] == word
    assert opsgenie_alert(told(severity=severity.value), alias="k")["priority"] == priority


def test_pagerduty__of_the_whole_installation__has_the_source_that_it_must_have() -> None:
    event: Any = pagerduty_trigger(told(environment="", link=""), routing_key="R", dedup_key="k")

    assert event["payload"]["source"] == "Parley"
    assert event["links"] == []


def test_opsgenie__alert_and_close__are_within_its_limits() -> None:
    long = told(title="t" * 500, text="x" * 2_000, subject="s" * 1_200, environment="e" * 63)

    alert: Any = opsgenie_alert(long, alias="k")

    assert (alert["alias"], alert["message"], alert["entity"]) == ("k", "t" * 130, "s" * 512)
    assert alert["tags"] == ["incident.opened", "e" * 50]
    # The title is cut in `message`: here it is whole.
    assert alert["description"] == f"{'t' * 500}\n{'x' * 2_000}\n{LINK}"
    assert sum(len(name) + len(text) for name, text in alert["details"].items()) <= 8_000
    assert all(isinstance(text, str) for text in alert["details"].values())
    assert str(opsgenie_close(told())["note"]).startswith("Cluster 'pay' is refused")


def test_bodies__of_the_longest_message__are_small() -> None:
    long = told(title="<" * 500, text="€" * 2_000, subject="s" * 1_200, link="https://x/" + "l" * 490)

    for body in (
        slack_body(long),
        pagerduty_trigger(long, routing_key="R", dedup_key="k"),
        opsgenie_alert(long, alias="k"),
    ):
        assert len(json.dumps(body)) < 50_000


def test_digest__of_some_messages__lists_them_and_counts_the_others() -> None:
    digest = Digest(Every.DAY, "2026-11-28 08:00 Europe/Berlin", 7, f"{URL}/messages")
    messages = [
        told(),
        told(title="A build\nfailed", severity=Severity.NORMAL.value, text="two\nlines", environment=""),
    ]

    subject, text = digest_words(messages, digest)

    assert subject == "[parley] 7 messages of the day until 2026-11-28 08:00 Europe/Berlin"
    assert "* Cluster 'pay' is refused in 'prod'\n  urgent, prod, 2026-11-28 07:00 UTC\n  3 of 3" in text
    assert "  two\n  lines\n" in text
    assert "And 5 more" in text
    assert f"{URL}/messages" in text


def test_digest__of_one_message__says_one() -> None:
    subject, text = digest_words([told()], Digest(Every.HOUR, "2026-11-28 07:00 UTC", 1, URL))

    assert subject == "[parley] 1 message of the hour until 2026-11-28 07:00 UTC"
    assert "more" not in text
