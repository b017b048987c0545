"""The sentence about an environment, from what is stored: who is told of, in every situation there is."""

import re
from typing import Final

import pytest

from controlplane.catalog.selectors import environment_list
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.status.selectors import environment_statuses
from controlplane.status.sentences import environment_sentences
from tests.services.incidents.fleet import held, publish
from tests.support.manifests import cluster
from tests.web import situations
from tests.web.situations import SITUATIONS, Scene, Situation

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]
BEGINS: Final = {
    "lost": r"\d of \d clients? lost ",
    "withheld": r"1 of 1 resource is withheld",
    "refused": r"\d of \d clients refuse ",
    "quarantined": r"1 of 1 resource is quarantined",
    "stalled": r"\d of \d resources? (is|are) stalled",
    "held": r"On hold, so no resource can be changed: ",
    "waiting": r"(The rollout |\d resources? waits? |What was written last )",
    "empty": r"It has no resources yet\.",
    "published": r"(All \d clients have|Its only resource is published|\d of \d clients)",
}


def said() -> str:
    environments = environment_list()
    statuses = environment_statuses(environments=environments)
    return environment_sentences(environments=environments, statuses=statuses)["default"].text


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.make.__name__)
def test_sentence__every_situation__is_of_its_word(situation: Situation) -> None:
    situation.make(Scene())

    assert re.match(BEGINS[situation.environment.value], said()), said()


def test_sentence__clients_took_it_then_one_is_sent_more__counts_who_has_it() -> None:
    scene = Scene()
    situations.published(scene)
    assert said().startswith("All 2 clients have what was published ")

    publish(cluster(situations.NAME, connect_timeout="2s"))
    scene.fleets[0].send(held(situations.NAME, 2))
    assert said().endswith(": 2 have not answered yet.")

    scene.leave()
    assert said().startswith("Its only resource is published, and no client is connected; ")


def test_sentence__refusal_of_what_is_replaced_beside_one_that_is_served__tells_of_the_served() -> None:
    scene = Scene()
    situations.refused(scene)
    current = Incident.objects.get()
    current.pk, current.public_id = None, "5e1f0e3c-0000-4000-8000-000000000000"
    current.fingerprint, current.version, current.name, current.nacked = "other", "gone", "pay", 99
    current.revision = 1
    current.save()

    assert " refuse cluster pay r2 of change " in said()
