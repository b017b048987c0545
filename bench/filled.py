"""An installation whose environment is full of resources, for scenarios that look at it from inside its processes."""

import json
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from bench.installation import installation, start_django
from bench.resources import fleet

if TYPE_CHECKING:
    from controlplane.catalog.values import Put

_BATCH = 10_000
_Argument = TypeVar("_Argument")


@contextmanager
def filled(resources: int) -> Iterator[str]:
    """Set up Django with an environment that holds this number of resources; yields an API token. Another process
    writes the resources, so that the memory for that is not this process's.
    """
    with installation() as home:
        apart(_fill, resources)
        start_django(migrate=False)
        from django.db import connections  # noqa: PLC0415

        try:
            yield (home / "admin.token").read_text(encoding="utf-8").strip()
        finally:
            connections.close_all()


def apart(fill: Callable[[_Argument], None], argument: _Argument) -> None:
    """Call `fill` with `argument` in another process, which sets up Django for the same installation. Raises
    RuntimeError when that fails.
    """
    filler = multiprocessing.get_context("spawn").Process(target=fill, args=(argument,))
    filler.start()
    filler.join()
    if filler.exitcode:
        raise RuntimeError(f"the installation could not be filled: status {filler.exitcode}")


def _fill(resources: int) -> None:
    start_django(migrate=True)
    from django.conf import settings  # noqa: PLC0415

    from controlplane.config.home import Home  # noqa: PLC0415
    from controlplane.ops.installation import installation_prepare  # noqa: PLC0415

    installation_prepare(config=settings.PARLEY, home=Home(settings.PARLEY.home))
    manifests = fleet(resources)
    while batch := list(islice(manifests, _BATCH)):
        put(batch)


def put(manifests: list[dict[str, object]], *, environment: str = "default", staged: bool = True) -> None:
    """Write these manifests as one change, by the services instead of the REST API. `staged`: whether they wait for a
    rollout, where the environment has rollouts; otherwise everybody has them at once.
    """
    from controlplane.accounts.principal import SYSTEM  # noqa: PLC0415
    from controlplane.catalog.services import Terms, change_apply  # noqa: PLC0415

    change_apply(environment_key=environment, edits=edits_of(manifests), actor=SYSTEM, terms=Terms(staged=staged))


def edits_of(manifests: list[dict[str, object]]) -> "list[Put]":
    """The edits that store these manifests. Raises RuntimeError where one is refused."""
    from controlplane.catalog.values import Put  # noqa: PLC0415
    from xdscore.schema import Media, ParsedResource, parse, read_manifests  # noqa: PLC0415

    read, findings = read_manifests(json.dumps(manifests).encode(), Media.JSON)
    parsed = [parse(manifest) for manifest in read]
    edits = [Put(each) for each in parsed if isinstance(each, ParsedResource)]
    refused = [*findings, *(each.findings for each in parsed if not isinstance(each, ParsedResource))]
    if refused:
        raise RuntimeError(f"a manifest of the benchmark is refused: {refused[0]}")
    return edits
