"""A secret that a cluster or a listener needs: the same rule for both, whether it never was or is gone."""

from typing import Any

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build
from controlplane.builder.services import build
from controlplane.catalog.models import Environment
from controlplane.catalog.services import change_apply, proofs_record
from controlplane.catalog.values import Delete, ProvenContent, Put
from controlplane.snapshots.selectors import snapshot_of_name
from tests.support.manifests import TYPE, Tree, cluster, listener, parsed, route, tls_secret
from tests.support.principals import somebody
from xdscore.resource_types import SECRET, by_word
from xdscore.snapshot import Served, WithheldName

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
_TLS = TYPE + "envoy.extensions.transport_sockets.tls.v3."
_SDS = {"name": "key", "sds_config": {"ads": {}, "resource_api_version": "V3"}}


AROUND = (route("r", "c"), cluster("c"))


def _socket(context: str) -> dict[str, Any]:
    common = {"tls_certificate_sds_secret_configs": [_SDS]}
    return {"name": "tls", "typed_config": {"@type": _TLS + context, "common_tls_context": common}}


def needy(word: str) -> Tree:
    """A cluster or a listener that needs the secret `key`."""
    if word == "cluster":
        return cluster("pay", transport_socket=_socket("UpstreamTlsContext"))
    tree: Any = listener("pay", "r", 8080)
    tree["filter_chains"][0]["transport_socket"] = _socket("DownstreamTlsContext")
    return dict(tree)


def put(*trees: Tree) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def served(word: str) -> Served | WithheldName | None:
    build(environment_id=Environment.objects.get(key="default").pk, memory=Memory())
    snapshot = snapshot_of_name(environment_key="default", kind=by_word[word], name="pay")
    assert snapshot is not None
    state = snapshot.type_state(by_word[word])
    return state.withheld.get("pay") or state.served.get("pay")


@pytest.mark.parametrize("word", ["cluster", "listener"])
def test_needed_secret__was_never_there_or_is_gone_before_anybody_took_it__is_withheld(
    database: str, word: str
) -> None:
    put(needy(word), *AROUND)
    before = served(word)
    put(tls_secret("key", "k"))
    there = served(word)

    change_apply(environment_key="default", edits=[Delete(SECRET, "key")], actor=DANA)

    assert isinstance(there, Served)
    assert before == served(word) == WithheldName("it refers to a Secret that does not exist")


@pytest.mark.parametrize("word", ["cluster", "listener"])
def test_needed_secret__is_gone_after_clients_took_what_needs_it__is_served_on_and_told(
    database: str, word: str
) -> None:
    put(needy(word), tls_secret("key", "k"), *AROUND)
    served(word)
    version = parsed(needy(word)).content_hash.hex()[:16]
    proofs_record(proven=[ProvenContent("default", word, "pay", version)])

    made = change_apply(environment_key="default", edits=[Delete(SECRET, "key")], actor=DANA)

    assert [(each.code, each.resource_name) for each in made.findings] == [("XDS3007", "key")]
    assert isinstance(served(word), Served)
    found = Build.objects.latest("id").findings
    assert [(each["code"], each["resource_type"]) for each in found if each["code"] == "XDS2002"] == [("XDS2002", word)]
