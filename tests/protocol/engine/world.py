"""A world to publish: what an operator has served, removed, withheld and forbidden, without an operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from adsserver.engine.events import (
    Respond,
    Variant,
)
from adsserver.engine.publication import Publication
from adsserver.engine.session import EngineSettings, Session
from tests.support.access_tables import SECRETS_FOR_ALL
from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.client_kinds import ClientFamily, ClientKind
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, ResourceType
from xdscore.sides import RolloutTable, client_digest
from xdscore.snapshot import (
    Content,
    Entry,
    RemovedName,
    Served,
    Snapshot,
    UnreadableName,
    WithheldName,
    client_mark,
    snapshot_from_entries,
    with_candidate,
)

AUDIENCE = Audience("default")
# Envoy keeps what it had when it refuses something; gRPC may have dropped it, and is sent it again (F17a).
CLIENT = ClientFacts(node_id="client-1", kind=ClientKind(ClientFamily.ENVOY, "1.40"))
GRPC_CLIENT = ClientFacts(node_id="client-1", kind=ClientKind(ClientFamily.GRPC_CORE, "1.85"))
URL = "https://parley.example"
SETTINGS = EngineSettings(public_url=URL)


def name_rules(effects: Mapping[tuple[str, str], Effect]) -> AccessTable:
    """A table that allows everything but has a rule for each of these names."""
    rules = (
        Rule(number, effect, name, types=frozenset({word}))
        for number, ((word, name), effect) in enumerate(sorted(effects.items(), key=lambda item: item[0]), start=1)
    )
    return AccessTable(Effect.ALLOW, rules=(*rules, SECRETS_FOR_ALL))


def content(version: str, *, eds_name: str = "", size: int = 100) -> Content:
    return Content(version.encode(), version, size, eds_name)


@dataclass
class World:
    """What an operator has published; `publish` makes the next publication of it."""

    entries: dict[tuple[str, str], Entry | UnreadableName] = field(default_factory=dict)
    effects: dict[tuple[str, str], Effect] = field(default_factory=dict)
    epoch: int = 0
    publication: Publication | None = None
    # In place of an equal one made anew each time: as a loader does it while no rule changes.
    access: AccessTable | None = None
    # The open rollout, and what its candidate side has in place of the entries.
    rollout: RolloutTable | None = None
    diff: dict[tuple[str, str], Entry | None] = field(default_factory=dict)

    def serve(
        self,
        kind: ResourceType,
        name: str,
        version: str,
        *,
        proven: str = "",
        eds_name: str | None = None,
        size: int = 100,
    ) -> None:
        eds = (name if kind is CLUSTER else "") if eds_name is None else eds_name
        last = content(proven, eds_name=eds, size=size) if proven else None
        self.entries[kind.word, name] = Served(content(version, eds_name=eds, size=size), last)

    def withhold(self, kind: ResourceType, name: str, reason: str = "it does not parse") -> None:
        self.entries[kind.word, name] = WithheldName(reason)

    def withhold_partly(self, kind: ResourceType, name: str, version: str, *kinds: ClientKind) -> None:
        """Withhold this from these kinds of clients; from everybody but who may probe it, where there are none."""
        what = content(version, eds_name=name if kind is CLUSTER else "")
        refusers = (client_mark(ClientFacts("spiffe://another")),)
        kinds_shown = tuple(map(str, kinds))
        self.entries[kind.word, name] = WithheldName("rejected by clients", what, kinds_shown, refusers)

    def unread(self, kind: ResourceType, name: str, reason: str = "its seal cannot be opened") -> None:
        self.entries[kind.word, name] = UnreadableName(reason)

    def remove(self, kind: ResourceType, name: str) -> None:
        self.entries[kind.word, name] = RemovedName()

    def forget(self, kind: ResourceType, name: str) -> None:
        self.entries.pop((kind.word, name), None)

    def rule(self, kind: ResourceType, name: str, effect: Effect) -> None:
        self.effects[kind.word, name] = effect

    def stage(self, kind: ResourceType, name: str, version: str) -> None:
        """Serve this on the candidate side alone, where the stable side's content is what a client falls back on."""
        stable = self.entries.get((kind.word, name))
        proven = stable.content if isinstance(stable, Served) else None
        self.diff[kind.word, name] = Served(content(version, eds_name=name if kind is CLUSTER else ""), proven)

    def stage_removal(self, kind: ResourceType, name: str) -> None:
        self.diff[kind.word, name] = RemovedName()

    def roll(self, *picks: ClientFacts, permille: int = 0) -> None:
        """Let these clients, and so many of a thousand, be on the candidate side from the next publication on."""
        digests = frozenset(client_digest("default", client) for client in picks)
        step = 0 if self.rollout is None else self.rollout.step + 1
        self.rollout = RolloutTable("rollout-1", step, digests, (), permille, "seed")

    def promote(self) -> None:
        """Give the stable side what the candidate side has, with which the rollout ends. Nothing of it is proven."""
        for key, entry in self.diff.items():
            if entry is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = entry
        self.take_back()

    def take_back(self) -> None:
        """End the rollout; nothing of what was staged stays."""
        self.rollout = None
        self.diff.clear()

    @property
    def published(self) -> Snapshot:
        return (self.publication or self.publish()).snapshot

    @property
    def snapshot(self) -> Snapshot:
        access = self.access or name_rules(self.effects)
        stable = snapshot_from_entries(
            environment="default", lineage="one", epoch=self.epoch, access=access, entries=self.entries.items()
        )
        return stable if self.rollout is None else with_candidate(stable, self.rollout, self.diff)

    def publish(self) -> Publication:
        self.epoch += 1
        self.publication = Publication(self.snapshot, self.publication)
        return self.publication


def session_of(
    world: World,
    variant: Variant = Variant.SOTW,
    settings: EngineSettings = SETTINGS,
    client: ClientFacts = CLIENT,
) -> Session:
    return Session(variant, client, settings, world.publication or world.publish(), takes_ttls=True)


def names_of(response: Respond) -> list[str]:
    return [member.name for member in response.resources]


def versions_of(response: Respond) -> dict[str, str]:
    return {member.name: member.content.version for member in response.resources}


def errors_of(response: Respond) -> dict[str, str]:
    return {error.name: error.code.name for error in response.errors}
