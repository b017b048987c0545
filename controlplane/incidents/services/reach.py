"""Who was sent what, and who asks for it, read once for a run: many incidents may be about one resource."""

from collections.abc import Mapping
from datetime import datetime

from controlplane.clients.selectors import clients_asking, clients_sent
from controlplane.incidents.models import Incident
from controlplane.incidents.verdict import ClientKey

_Key = tuple[str, str, tuple[str, ...]]


def names_of(incident: Incident) -> tuple[str, ...]:
    """The name that an incident is about, or the names of its suspects."""
    return (incident.name,) if incident.name else tuple(str(name) for name, _ in incident.suspects)


class Reach:
    """The clients that were sent, or ask for, what incidents are about; each is read once in a run."""

    def __init__(self) -> None:
        self._sent: dict[tuple[_Key, datetime], Mapping[str, ClientKey]] = {}
        self._asking: dict[_Key, Mapping[str, ClientKey]] = {}

    def sent(self, incident: Incident) -> Mapping[str, ClientKey]:
        """The clients, by id, that were sent what the incident is about since the refused revision was written."""
        environment, word, names = _key(incident)
        key = ((environment, word, names), incident.since)
        if key not in self._sent:
            self._sent[key] = clients_sent(environment_key=environment, word=word, names=names, since=incident.since)
        return self._sent[key]

    def asking(self, incident: Incident) -> Mapping[str, ClientKey]:
        """The connected clients, by id, that ask for what the incident is about."""
        environment, word, names = key = _key(incident)
        if key not in self._asking:
            self._asking[key] = clients_asking(environment_key=environment, word=word, names=names)
        return self._asking[key]


def _key(incident: Incident) -> _Key:
    return incident.environment.key, incident.type, names_of(incident)
