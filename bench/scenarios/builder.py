"""What a change costs between its REST request and its snapshot (performance.md: build, apply)."""

import json
import multiprocessing
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from bench.installation import installation, start_django
from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster, fleet

_BATCH = 10_000
_KIB_PER_MIB = 1024


@scenario("build-10k", "One changed resource among 10,000: the build after its quiet time", parameters={"repeat": 11})
def build_10k(parameters: Parameters) -> Iterator[Measurement]:
    """performance.md: at most 150 ms."""
    yield from _build(10_000, repeat=parameters["repeat"], at_most_ms=150)


@scenario("build-100k", "One changed resource among 100,000", parameters={"repeat": 7})
def build_100k(parameters: Parameters) -> Iterator[Measurement]:
    """performance.md: at most 1.5 s, in a worker of at most 400 MiB."""
    yield from _build(100_000, repeat=parameters["repeat"], at_most_ms=1_500)


@scenario("apply", "REST apply of 1,000 new clusters to an environment of 10,000 resources", parameters={"repeat": 5})
def apply(parameters: Parameters) -> Iterator[Measurement]:
    """performance.md: at most 2 s, of which validation at most 0.5 ms a cluster."""
    with _installed(10_000) as token:
        # The product is imported where it is installed.
        from django.test import Client  # noqa: PLC0415

        from xdscore.schema import Media, parse, read_manifests  # noqa: PLC0415

        client = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})
        took, parsed = [], []
        for round_ in range(parameters["repeat"]):
            manifests = [cluster(1_000_000 + round_ * 1_000 + number) for number in range(1_000)]
            body = json.dumps({"resources": manifests})
            began = time.perf_counter()
            answer = client.post("/api/v1/environments/default/apply", body, content_type="application/json")
            took.append(time.perf_counter() - began)
            if answer.status_code != 202:
                raise RuntimeError(f"apply was answered {answer.status_code}: {answer.content[:500]!r}")
            began = time.perf_counter()
            read, _ = read_manifests(json.dumps(manifests).encode(), Media.JSON)
            for manifest in read:
                parse(manifest)
            parsed.append((time.perf_counter() - began) * 1000 / len(manifests))
    yield Measurement("apply of 1,000 clusters", "s", tuple(took), at_most=2.0)
    yield Measurement("reading and validation of one cluster", "ms", tuple(parsed), at_most=0.5)


def _build(resources: int, *, repeat: int, at_most_ms: float) -> Iterator[Measurement]:
    with _installed(resources):
        # As in a worker: its tasks and libraries are loaded before the first build, and counted as its memory.
        import controlplane.celery  # noqa: F401, PLC0415
        from controlplane.builder.models import Build  # noqa: PLC0415
        from controlplane.builder.services import build  # noqa: PLC0415
        from controlplane.catalog.selectors import environment_get  # noqa: PLC0415

        environment = environment_get(key="default").id
        began = time.perf_counter()
        build(environment_id=environment)
        first_ms = (time.perf_counter() - began) * 1000
        took = []
        for round_ in range(repeat):
            _put([cluster(round_, timeout_s=2)])
            began = time.perf_counter()
            build(environment_id=environment)
            took.append((time.perf_counter() - began) * 1000)
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB
        stages = list(Build.objects.order_by("-id").values_list("stage_ms", flat=True)[:repeat])
    yield Measurement("first build of a worker, everything new", "ms", (first_ms,))
    yield Measurement("build", "ms", tuple(took), at_most=at_most_ms)
    for stage in stages[0]:
        yield Measurement(f"  {stage}", "ms", tuple(each[stage] for each in stages))
    yield Measurement("memory of the worker, at most", "MiB", (peak_mib,), at_most=400)


@contextmanager
def _installed(resources: int) -> Iterator[str]:
    """Django, set up over an environment that holds so many resources; yields a token. Writing them took another
    process, whose memory is not this one's.
    """
    with installation() as home:
        filler = multiprocessing.get_context("spawn").Process(target=_fill, args=(resources,))
        filler.start()
        filler.join()
        if filler.exitcode:
            raise RuntimeError(f"the environment could not be filled: status {filler.exitcode}")
        start_django(migrate=False)
        yield (home / "admin.token").read_text(encoding="utf-8").strip()


def _fill(resources: int) -> None:
    start_django(migrate=True)
    from django.conf import settings  # noqa: PLC0415

    from controlplane.home import Home  # noqa: PLC0415
    from controlplane.ops.installation import installation_prepare  # noqa: PLC0415

    installation_prepare(config=settings.PARLEY, home=Home(settings.PARLEY.home))
    manifests = fleet(resources)
    while batch := list(islice(manifests, _BATCH)):
        _put(batch)


def _put(manifests: list[dict[str, object]]) -> None:
    from controlplane.accounts.principal import SYSTEM  # noqa: PLC0415
    from controlplane.catalog.services import change_apply  # noqa: PLC0415
    from controlplane.catalog.values import Put  # noqa: PLC0415
    from xdscore.schema import Media, ParsedResource, parse, read_manifests  # noqa: PLC0415

    read, _ = read_manifests(json.dumps(manifests).encode(), Media.JSON)
    parsed = [parse(manifest) for manifest in read]
    edits = [Put(each) for each in parsed if isinstance(each, ParsedResource)]
    if len(edits) != len(manifests):
        raise RuntimeError("a manifest of the benchmark is refused")
    change_apply(environment_key="default", edits=edits, actor=SYSTEM)
