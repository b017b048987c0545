"""How a client's own word compared is kept, on both databases: since when, how much, and not longer than the client."""

import random
import tracemalloc
from dataclasses import replace
from datetime import timedelta
from itertools import count
from string import ascii_letters

import pytest

from controlplane.clients.clock import database_now
from controlplane.clients.comparing import Belief, Believed, Comparison, Difference, DifferenceKind
from controlplane.clients.foreign_text import NOT_SHOWN
from controlplane.clients.models import Client, Report, SaidDifference, Stream
from controlplane.clients.reports import client_word, differing_counts
from controlplane.clients.services import facts_prune, report_keep
from controlplane.common.errors import NotFound
from tests.services.incidents.fleet import Fleet, publish
from tests.support.manifests import tls_secret
from xdscore.redaction import REDACTED
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


def test_report__errors_about_many_long_secrets__are_read_one_by_one_for_a_bounded_time(client: str) -> None:
    keys = {f"s{number}": "".join(random.Random(number).choices(ascii_letters, k=16_000)) for number in range(8)}  # noqa: S311
    publish(*(tls_secret(name, key) for name, key in keys.items()), built=False)
    differences = tuple(
        Difference(
            DifferenceKind.REFUSES,
            "secret",
            name,
            Believed(Belief.HAS, R2),
            Said("secret", name, SaidState.NACKED, held=False, error=f"{name}: bad {key[:400]}"),
        )
        for name, key in keys.items()
    )
    moments = count()
    tracemalloc.start()

    report_keep(
        client=client,
        source=SaidSource.CSDS,
        by="token:side-car",
        comparison=Comparison(frozenset({"secret"}), differences, 8, 0, frozenset()),
        revisions={},
        clock=lambda: 0.25 * next(moments),
    )

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 1024**2
    errors = list(SaidDifference.objects.order_by("name").values_list("error", flat=True))
    read = sum(error != NOT_SHOWN for error in errors)
    assert 0 < read < len(errors)
    assert all(error.endswith(REDACTED) for error in errors[:read])
