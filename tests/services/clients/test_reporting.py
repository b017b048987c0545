"""How a client's own word compared is kept, on both databases: since when, how much, and not longer than the client."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.clients.clock import database_now
from controlplane.clients.comparing import Belief, Believed, Comparison, Difference, DifferenceKind
from controlplane.clients.models import Client, Report, SaidDifference, Stream
from controlplane.clients.reports import client_word, differing_counts
from controlplane.clients.services import facts_prune, report_keep
from controlplane.errors import NotFound
from tests.services.incidents.fleet import Fleet
from xdscore.said import Said, SaidSource, SaidState

pytestmark = pytest.mark.django_db(transaction=True)

R1, R2 = "1" * 16, "2" * 16
PAY = Difference(
    DifferenceKind.OTHER_CONTENT,
    "cluster",
    "pay",
    Believed(Belief.HAS, R2),
    Said("cluster", "pay", SaidState.ACKED, held=True, version=R1),
)
ONE = Comparison(frozenset({"cluster"}), (PAY,), 3, 1, frozenset())


@pytest.fixture
def client(database: str) -> str:
    Fleet(1)
    return str(Client.objects.get().pk)


def keep(client: str, comparison: Comparison) -> None:
    key = ("cluster", "pay")
    report_keep(
        client=client,
        source=SaidSource.CSDS,
        by="token:side-car",
        comparison=comparison,
        revisions={(key, R1): 1, (key, R2): 2},
    )


def test_report__kept_twice__is_the_newest_and_differs_since_the_first(client: str) -> None:
    keep(client, ONE)
    first = client_word(public_id=client)
    keep(client, replace(ONE, differences=(replace(PAY, kind=DifferenceKind.REFUSES),)))
    second = client_word(public_id=client)

    assert first is not None
    assert second is not None
    [before], [after] = first.differences, second.differences
    assert (before.sentence, after.kind) == ("It has r1; Parley believes it has r2.", DifferenceKind.REFUSES)
    assert (after.since, after.seen_at > before.seen_at) == (before.since, True)
    assert (second.report.agreeing, second.report.by_presence, len(second.earlier)) == (2, 1, 1)
    assert differing_counts(clients=[client]) == {client: 1}


def test_report__that_agrees_or_is_unsure__ends_the_difference_or_leaves_it(client: str) -> None:
    keep(client, ONE)

    keep(client, replace(ONE, differences=(), unsure=frozenset({("cluster", "pay")})))
    unsure = SaidDifference.objects.count()
    keep(client, replace(ONE, differences=(), types=frozenset({"route"})))
    other_type = SaidDifference.objects.count()
    keep(client, replace(ONE, differences=()))

    assert (unsure, other_type, SaidDifference.objects.count()) == (1, 1, 0)


def test_client__forgotten__takes_its_reports_along(client: str) -> None:
    keep(client, ONE)
    long_ago = database_now() - timedelta(days=2)
    Stream.objects.update(closed_at=long_ago)
    Client.objects.update(last_seen=long_ago)

    facts_prune()
    facts_prune()

    assert (Client.objects.count(), Report.objects.count(), SaidDifference.objects.count()) == (0, 0, 0)
    with pytest.raises(NotFound):
        keep(client, ONE)
