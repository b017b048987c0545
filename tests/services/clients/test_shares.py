"""What one identity makes of facts takes nobody else's place: not in what waits, nor in what is kept."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from controlplane.clients.facts import (
    NO_NAMES,
    ClientFact,
    FactBatch,
    NackFact,
    ReplicaFact,
    StreamEnd,
    StreamFact,
    intern_contents,
)
from controlplane.clients.foreign_text import KeptText, nack_text
from controlplane.clients.models import Client, Nack, Stream
from controlplane.clients.selectors import nacks_pending
from controlplane.clients.services import facts_prune, facts_write, nacks_mark_digested, nacks_shed
from controlplane.database.aliases import READER
from xdscore.client_kinds import ClientFamily
from xdscore.redaction import NO_SECRETS

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

CONTENTS = intern_contents([("pay", "v1")])
MAD, QUIET = "id mad", "id quiet"


def limited(settings: Settings, **limits: int) -> None:
    settings.PARLEY = replace(settings.PARLEY, limits=replace(settings.PARLEY.limits, **limits))


def seen(who: str, numbers: Iterable[int], *, nacks: int = 0, left: bool = True) -> None:
    """Clients of `who`, each with a stream, that refuse something so many times and, unless said otherwise, leave."""
    same = CONTENTS.id
    keys = [f"{who[3:]}-{number}" for number in numbers]
    facts_write(
        batch=FactBatch(
            ReplicaFact("r" * 32, "here", 1, 10.0),
            clients=tuple(
                ClientFact(key, "default", who[3:], key, "", ClientFamily.ENVOY, "envoy", "1", 5.0, who) for key in keys
            ),
            streams=tuple(StreamFact(f"s-{key}", key, "sotw", "ipv4:192.0.2.1:1", 5.0) for key in keys),
            name_sets=(NO_NAMES,),
            content_lists=(CONTENTS,),
            nacks=tuple(
                NackFact(key, f"s-{key}", "cluster", "w1", 13, said(at), same, same, same, 1, 5.0, accountable=who)
                for key in keys
                for at in range(nacks)
            ),
            ends=tuple(StreamEnd(f"s-{key}", "gone", 1.0) for key in keys) if left else (),
        )
    )


def said(at: int) -> KeptText:
    return nack_text(str(at), secret=False, held=NO_SECRETS, max_bytes=100)


def whose() -> Counter[str]:
    return Counter(Nack.objects.values_list("accountable", flat=True))


def test_nacks__that_wait_behind_a_flood__are_handed_out_with_its_first() -> None:
    seen(MAD, range(3), nacks=20)
    seen(QUIET, [1], nacks=3)

    pending = nacks_pending(limit=10)

    assert Counter(each.accountable for each in pending) == {MAD: 7, QUIET: 3}
    assert [each.id for each in pending] == sorted(each.id for each in pending)


def test_nacks__that_outrun_the_digest__cost_whoever_sent_most(settings: Settings) -> None:
    limited(settings, nacks_per_environment=10)
    seen(QUIET, [1], nacks=3)
    seen(MAD, range(3), nacks=20)

    assert nacks_shed() == 53

    assert whose() == {MAD: 7, QUIET: 3}
    assert nacks_shed() == 0


def test_nacks__that_are_digested__are_kept_in_fair_shares(settings: Settings) -> None:
    limited(settings, nacks_per_environment=10)
    seen(QUIET, [1], nacks=3)
    seen(MAD, range(3), nacks=20)
    nacks_mark_digested(ids=Nack.objects.values_list("pk", flat=True))

    facts_prune()

    assert whose() == {MAD: 7, QUIET: 3}


def test_clients__ever_new_ones_of_one_identity__push_out_its_own_oldest_alone(settings: Settings) -> None:
    limited(settings, clients_per_environment=10)
    seen(QUIET, range(4))
    seen(QUIET, [9], left=False)
    seen(MAD, range(30))
    seen(MAD, range(100, 120), left=False)
    seen(MAD, [200], nacks=1)

    facts_prune()

    left = Counter(Client.objects.filter(streams__closed_at__isnull=False).values_list("accountable", flat=True))
    assert left == {MAD: 6 + 1, QUIET: 4}  # one has said something that nobody has digested yet
    assert Client.objects.filter(streams__closed_at=None).count() == 21


def test_streams__opened_and_ended_over_and_over__are_remembered_in_fair_shares(settings: Settings) -> None:
    limited(settings, closed_streams_per_environment=10)
    seen(QUIET, range(4))
    seen(MAD, range(30))

    facts_prune()

    remembered = Counter(Stream.objects.values_list("client__accountable", flat=True))
    assert remembered == {MAD: 6, QUIET: 4}
