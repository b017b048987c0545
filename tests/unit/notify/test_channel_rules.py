"""What a channel must be: everything that is wrong with it is said at once, and where."""

from ipaddress import ip_network
from typing import Any

import pytest

from controlplane.config.values import WebhookAllow
from controlplane.notify.channel_kinds import FACTS, ChannelKind, Key
from controlplane.notify.channel_rules import Judged, NewChannel, channel_judge
from controlplane.notify.schedules import DEFAULT, Every, Schedule

NOBODY = WebhookAllow()
GIVEN = [kind for kind, facts in FACTS.items() if facts.key is Key.GIVEN]


def judged(kind: ChannelKind, target: str = "", *, has_key: bool = False, **more: Any) -> Judged:
    return channel_judge(NewChannel("ops", kind, target, **more), allow=NOBODY, has_key=has_key)


def wrong(found: Judged) -> dict[str, str]:
    return {each.pointer: each.detail for each in found.findings}


def test_channel__wrong_in_every_part__says_so_of_each() -> None:
    wanted = NewChannel(
        " ",
        ChannelKind.OPSGENIE,
        "ftp://x",
        environments=["e" * 64],
        kinds=["incident.opened", "incident.imagined"],
        secret="two words",
        digest={},
    )

    found = wrong(channel_judge(wanted, allow=NOBODY))

    assert found.keys() == {"/name", "/target", "/environments", "/kinds", "/secret", "/digest"}
    assert "'incident.imagined'" in found["/kinds"]
    assert "two words" not in str(found)


@pytest.mark.parametrize("kind", GIVEN)
def test_api__not_named__is_that_of_the_service(kind: ChannelKind) -> None:
    found = judged(kind, secret="k")

    assert found == Judged(FACTS[kind].api, None, ())


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize(
    ("target", "stored"),
    [("https://api.eu.example", "https://api.eu.example"), ("https://proxy.example/og/", "https://proxy.example/og")],
)
def test_api__with_or_without_a_path__is_what_paths_are_added_to(kind: ChannelKind, target: str, stored: str) -> None:
    assert judged(kind, target, secret="k") == Judged(stored, None, ())


@pytest.mark.parametrize("target", ["https://x.example/?a=b", "https://x.example/#a", "https://127.0.0.1", "x.example"])
@pytest.mark.parametrize("kind", GIVEN)
def test_api__where_nothing_can_be_sent__is_refused(kind: ChannelKind, target: str) -> None:
    assert wrong(judged(kind, target, secret="k")).keys() == {"/target"}


@pytest.mark.parametrize(
    ("target", "taken"),
    [
        ("http://127.0.0.1:1", True),
        ("http://proxy.inside", True),
        ("http://events.example", False),
        ("https://events.example", True),
    ],
)
def test_api__not_over_https__is_taken_only_where_it_is_listed(target: str, taken: bool) -> None:
    wanted = NewChannel("ops", ChannelKind.PAGERDUTY, target, secret="k")
    allow = WebhookAllow(networks=(ip_network("127.0.0.0/8"),), hosts=("proxy.inside",))

    assert (channel_judge(wanted, allow=allow).findings == ()) is taken


@pytest.mark.parametrize("kind", GIVEN)
def test_key__missing__is_asked_for_unless_it_is_stored(kind: ChannelKind) -> None:
    assert FACTS[kind].key_title in wrong(judged(kind))["/secret"]
    assert judged(kind, has_key=True).findings == ()


@pytest.mark.parametrize("secret", ["a b", "tab\t", "line\n", "é", "k" * 501])
def test_key__that_no_header_could_hold__is_refused(secret: str) -> None:
    assert wrong(judged(ChannelKind.OPSGENIE, secret=secret)).keys() == {"/secret"}


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (ChannelKind.WEBHOOK, "https://x.example"),
        (ChannelKind.SLACK, "https://x.example"),
        (ChannelKind.MAIL, "a@b.example"),
    ],
)
def test_key_and_digest__of_a_kind_without__are_refused(kind: ChannelKind, target: str) -> None:
    assert wrong(judged(kind, target, secret="k", digest={"every": "hour"})).keys() == {"/secret", "/digest"}


def test_digest__not_said__is_daily() -> None:
    assert judged(ChannelKind.DIGEST, "a@b.example") == Judged("a@b.example", DEFAULT, ())
    hourly = judged(ChannelKind.DIGEST, "a@b.example", digest={"every": "hour", "hour": 7})
    assert hourly.schedule == Schedule(Every.HOUR, 0, "UTC")


@pytest.mark.parametrize("digest", [{"zone": "Mars/Olympus"}, {"zone": 1}, [], "daily", {"hour": "8"}])
def test_digest__that_is_none__is_refused(digest: object) -> None:
    [finding] = judged(ChannelKind.DIGEST, "a@b.example", digest=digest).findings

    assert finding.pointer.startswith("/digest")
