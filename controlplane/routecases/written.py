"""What is written in an environment, and what would be by a write, as cases are judged by it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final

from google.protobuf.any_pb2 import Any as AnyProto

from controlplane.access.selectors import access_table_read
from controlplane.catalog.models import Environment, Resource
from controlplane.catalog.selectors import blob_plaintext
from xdscore.access import AccessTable, Audience, Effect
from xdscore.environment_choice import ClientFacts
from xdscore.names import canonical
from xdscore.resource_types import ENDPOINT, LISTENER, by_word
from xdscore.routing.tracing import MAX_LISTENERS
from xdscore.routing.values import Given, Key
from xdscore.schema.types_registry import new_message
from xdscore.schema.walk import AnyMessage, unpack

_BATCH: Final = 300
_ENDPOINTS: Final = "envoy.config.endpoint.v3.ClusterLoadAssignment"
_AS_STORED: Final[Mapping[Key, bytes | None]] = MappingProxyType({})


class WrittenNow:
    """The newest contents of an environment's resources, whether or not they are served.

    `puts`: what a write makes of resources, by type and canonical name: their serialized Any, None for a deletion.
    `table`: the access rules by which clients are given what they ask for; None: those that are in force.
    """

    def __init__(
        self,
        environment: Environment,
        puts: Mapping[Key, bytes | None] = _AS_STORED,
        table: AccessTable | None = None,
    ) -> None:
        self._environment = environment
        self._puts = puts
        self._put_table = table
        self._messages: dict[Key, AnyMessage | None] = {}
        self._audiences: dict[tuple[object, ...], Audience] = {}

    def listeners(self) -> Sequence[str]:
        """The names of all listeners, in order; of more than are told apart by their ports, one more than those."""
        return self._listeners

    @cached_property
    def _listeners(self) -> Sequence[str]:
        put = {name: content for (word, name), content in self._puts.items() if word == LISTENER.word}
        rows = Resource.objects.filter(environment=self._environment, type=LISTENER.word, deleted=False)
        # Of those that are stored, as many may be deleted as the write deletes.
        stored = rows.order_by("name").values_list("name", flat=True)[: MAX_LISTENERS + 1 + len(put)]
        names = {name for name in stored if put.get(name, b"") is not None}
        names |= {name for name, content in put.items() if content is not None}
        return sorted(names)[: MAX_LISTENERS + 1]

    def load(self, keys: Collection[Key]) -> None:
        """Read these resources at once, since they are asked for next."""
        wanted = {(word, canonical(name)) for word, name in keys} - self._messages.keys()
        for key in wanted & self._puts.keys():
            content = self._puts[key]
            self._messages[key] = _message(key, content) if content is not None else None
        stored = wanted - self._puts.keys()
        self._messages.update(dict.fromkeys(stored))
        for word in sorted({word for word, _ in stored}):
            self._messages.update(self._read(word, sorted(name for each, name in stored if each == word)))

    def _read(self, word: str, names: Sequence[str]) -> Iterator[tuple[Key, AnyMessage | None]]:
        rows = Resource.objects.filter(environment=self._environment, type=word, deleted=False)
        for start in range(0, len(names), _BATCH):
            batch = rows.filter(name__in=names[start : start + _BATCH])
            if word == ENDPOINT.word:
                for name in batch.values_list("name", flat=True):
                    yield (word, name), _message((word, name), b"")
                continue
            for row in batch.select_related("head__blob"):
                if row.head is not None and row.head.blob is not None:
                    yield (word, row.name), _message((word, row.name), blob_plaintext(row.head.blob))

    def given(self, key: Key, client: ClientFacts | None) -> Given:
        """What a client with these facts is given of the resource; None: whoever may read it."""
        word, name = key[0], canonical(key[1])
        message = self._messages[word, name]
        if message is None:
            return Given(None, "Nothing of that name is written.")
        if client is not None:
            ruling = self._table.ruling(self._audience(client), by_word[word], name)
            if ruling.effect is not Effect.ALLOW:
                by = f"access rule {ruling.rule} says so" if ruling.rule else "the environment's default says so"
                return Given(None, f"The client may not read it: {by}.")
        return Given(message)

    def _audience(self, client: ClientFacts) -> Audience:
        facts = (client.identity, client.node_id, client.node_cluster, *sorted(client.metadata.items()))
        if facts not in self._audiences:
            self._audiences[facts] = self._table.audience(self._environment.key, client)
        return self._audiences[facts]

    @cached_property
    def _table(self) -> AccessTable:
        if self._put_table is not None:
            return self._put_table
        default = Effect(self._environment.default_effect)
        return access_table_read(environment_id=self._environment.pk, default=default)


def _message(key: Key, content: bytes) -> AnyMessage | None:
    """The message in a serialized Any. Of endpoints an empty one: an end only needs that they exist."""
    return new_message(_ENDPOINTS) if key[0] == ENDPOINT.word else unpack(AnyProto.FromString(content))
