"""Rollouts by hand: what an environment's rollout would do next, said by a test."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from uuid import uuid4

from django.db import transaction

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.memory import Memory
from controlplane.builder.services import build
from controlplane.catalog.models import Environment
from controlplane.catalog.rollout_settings import RolloutMode, RolloutSettings
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import (
    Terms,
    change_apply,
    environment_lock,
    environment_update,
    names_promote,
    names_take_back,
    side_close,
    side_open,
    side_step,
)
from controlplane.catalog.staging import names_candidate, names_stopped, names_waiting
from controlplane.catalog.values import ChangeMade, Delete, Put
from controlplane.snapshots.selectors import candidate_diff, entries_published
from tests.support.manifests import Tree, parsed
from tests.support.principals import somebody
from xdscore.resource_types import by_word
from xdscore.sides import RolloutTable
from xdscore.snapshot import Entry, EntryKey, RemovedName, Served, WithheldName

DANA = somebody("dana", ADMIN_SCOPES)
PILOT = RolloutSettings(mode=RolloutMode.PILOT)


def rollouts(settings: RolloutSettings) -> None:
    """Give the default environment these settings of rollouts."""
    policy = replace(environment_get(key="default").policy, rollout=settings)
    environment_update(key="default", policy=policy, actor=DANA)


def write(*trees: Tree, delete: Collection[EntryKey] = (), staged: bool = True) -> ChangeMade:
    """Put these manifests and delete these names, as one change."""
    edits = [Put(parsed(tree)) for tree in trees] + [Delete(by_word[word], name) for word, name in delete]
    return change_apply(environment_key="default", edits=edits, actor=DANA, terms=Terms(staged=staged))


def table_of(permille: int = 0, *, step: int = 0, rollout: str = "") -> RolloutTable:
    """The table of a rollout that has `permille` of a thousand clients."""
    return RolloutTable(rollout or str(uuid4()), step, frozenset(), (), permille, "seed")


def opened(names: Collection[EntryKey] | None = None) -> RolloutTable:
    """Open a rollout of these names; None: of all that wait."""
    table = table_of(10)
    chosen = [view.key for view in names_waiting("default")] if names is None else names
    with transaction.atomic(durable=True):
        side_open(environment_lock(key="default"), table=table, names=chosen)
    return table


def stepped(table: RolloutTable) -> None:
    """Give the open rollout this table."""
    with transaction.atomic(durable=True):
        side_step(environment_lock(key="default"), table=table)


def promoted(names: Collection[EntryKey] | None = None) -> None:
    """Promote these names of the open rollout; None: all."""
    chosen = [view.key for view in names_candidate("default")] if names is None else names
    with transaction.atomic(durable=True):
        names_promote(environment_lock(key="default"), names=chosen)


def taken_back(*names: EntryKey, incident: str = "") -> ChangeMade:
    """Take these names of the open rollout back."""
    with transaction.atomic(durable=True):
        return names_take_back(
            environment_lock(key="default"),
            incidents=dict.fromkeys(names, incident),
            reason="2 of 2 pilots refused it",
            actor=DANA,
            rollout_label="rollout 1b2c3d4e",
        )


def closed() -> None:
    """End the open rollout."""
    with transaction.atomic(durable=True):
        side_close(environment_lock(key="default"))


def built() -> None:
    """Build the default environment by a worker that remembers nothing."""
    build(environment_id=Environment.objects.get(key="default").pk, memory=Memory())


def staged() -> Mapping[EntryKey, str]:
    """How far each staged name of the default environment has come, in one word."""
    views = (*names_waiting("default"), *names_candidate("default"), *names_stopped("default"))
    return {view.key: view.state.value for view in views}


def shown(entry: Entry | None) -> str:
    """What an entry serves: a version, or "withheld" or "removed", or nothing."""
    match entry:
        case Served(content=content):
            return content.version
        case WithheldName():
            return "withheld"
        case RemovedName():
            return "removed"
    return ""


def stable(*key: str) -> str:
    """What the stable side serves of a name."""
    return shown(entries_published(environment_key="default").get((key[0], key[1])))


def candidate(*key: str) -> str:
    """What the candidate side serves of a name."""
    name = key[0], key[1]
    diff = candidate_diff(environment_key="default")
    return shown(diff[name]) if name in diff else stable(*key)


def version(tree: Tree) -> str:
    """The version on the wire of a manifest."""
    return parsed(tree).content_hash.hex()[:16]
