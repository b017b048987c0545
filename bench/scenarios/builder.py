"""What a change costs between its REST request and its snapshot (performance.md: build)."""

import resource
import time
from collections.abc import Iterator

from bench.filled import filled, put
from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster

_KIB_PER_MIB = 1024


@scenario("build-10k", "One changed resource among 10,000: the build after its quiet time", parameters={"repeat": 11})
def build_10k(parameters: Parameters) -> Iterator[Measurement]:
    """Measure a build of 10,000 resources. performance.md: at most 150 ms."""
    yield from _build(10_000, repeat=parameters["repeat"], at_most_ms=150)


@scenario("build-100k", "One changed resource among 100,000", parameters={"repeat": 7})
def build_100k(parameters: Parameters) -> Iterator[Measurement]:
    """Measure a build of 100,000 resources. performance.md: at most 1.5 s, in a worker of at most 400 MiB."""
    yield from _build(100_000, repeat=parameters["repeat"], at_most_ms=1_500)


def _build(resources: int, *, repeat: int, at_most_ms: float) -> Iterator[Measurement]:
    with filled(resources):
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
            put([cluster(round_, timeout_s=2)])
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
