"""Somebody who changes things all the time, and keeps account of it in the truth."""

import random
import threading
from collections.abc import Mapping
from http.client import HTTPException
from typing import Final

from tests.soak.truth import FLAPPING, GUARDED, RULE, Truth
from tests.support.manifests import TYPE, Tree, cluster
from tests.support.stack import Answer, Parley, readiness
from tests.support.waiting import eventually

_HERE = "/environments/default"
_FEWEST, _MOST = 20, 40
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 0.8
_READY_S = 60
_ACCEPTED, _OK, _CREATED, _NOT_FOUND, _CONFLICT = 202, 200, 201, 404, 409
_PORTS: Final = {FLAPPING: 1, GUARDED: 2}


class Writer:
    """Writes on a thread of its own. Who holds `lock` has the truth for himself: nothing is written meanwhile."""

    def __init__(self, parley: Parley, truth: Truth, chance: random.Random) -> None:
        self.lock = threading.Lock()
        self.done = 0
        self.refused = 0
        self._parley = parley
        self._truth = truth
        self._chance = chance
        self._serial = 0
        self._rule = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def prepare(self) -> None:
        """What the changes begin with. Called once, before `start`."""
        rule = self._parley.call("POST", f"{_HERE}/rules", {"pattern": GUARDED, "effect": "deny", "enabled": False})
        assert rule.status == _CREATED, rule
        self._rule = rule.body["id"]
        self._parley.apply(_listener(GUARDED))
        names = [self.fresh_name() for _ in range(_FEWEST)]
        self.write({name: self.fresh_seconds() for name in (*names, GUARDED)})

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self) -> None:
        """No more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def fresh_name(self) -> str:
        """A cluster that there never was."""
        return f"c{self.fresh_seconds()}"

    def fresh_seconds(self) -> int:
        """A connect timeout that no cluster ever had."""
        self._serial += 1
        return self._serial

    def write(self, clusters: Mapping[str, int | None]) -> bool:
        """One change of these clusters; None removes one. Whether it is sure that it was kept."""
        written = [cluster(name, connect_timeout=f"{value}s") for name, value in clusters.items() if value is not None]
        removed = [{"type": "cluster", "name": name} for name, value in clusters.items() if value is None]
        sure = self._apply(written, removed)
        for name, value in clusters.items():
            self._truth.write(name, value, sure=sure)
        return sure

    def settle(self) -> None:
        """Read what nobody was sure of. Fails when the web process cannot serve in time."""
        eventually(lambda: readiness(self._parley.web_port)[0], lambda status: status == _OK, within_s=_READY_S)
        for subject in sorted(self._truth.unsure):
            if subject == RULE:
                self._truth.denied = bool(self._read(f"{_HERE}/rules/{self._rule}").body["enabled"])
            elif subject == FLAPPING:
                self._truth.flapping = self._read(f"{_HERE}/resources/listener/{FLAPPING}").status == _OK
            else:
                found = self._read(f"{_HERE}/resources/cluster/{subject}")
                self._truth.clusters.pop(subject, None)
                if found.status == _OK:
                    self._truth.clusters[subject] = int(found.body["connect_timeout"].removesuffix("s"))
        self._truth.unsure.clear()

    def _run(self) -> None:
        while not self._ended.wait(self._chance.uniform(_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S)):
            with self.lock:
                self._step()

    def _step(self) -> None:
        """One change. What is hit by it is drawn; what is not sure is left alone until it has been read."""
        free = [name for name in self._truth.clusters if name[0] == "c" and name not in self._truth.unsure]
        match self._chance.choices(("update", "create", "delete", "deny", "flap"), (5, 2, 2, 1, 1))[0]:
            case "create" if len(self._truth.clusters) < _MOST:
                self.write({self.fresh_name(): self.fresh_seconds() for _ in range(self._chance.randint(1, 3))})
            case "delete" if len(free) > _FEWEST:
                self.write(dict.fromkeys(self._chance.sample(free, self._chance.randint(1, 2))))
            case "deny":
                self._deny(not self._truth.denied)
            case "flap":
                self._flap(not self._truth.flapping)
            case _ if free:
                self.write({name: self.fresh_seconds() for name in self._chance.sample(free, min(3, len(free)))})

    def _deny(self, denied: bool) -> None:
        answer = self._call("PATCH", f"{_HERE}/rules/{self._rule}", {"enabled": denied})
        self._truth.deny(denied, sure=answer is not None and answer.status == _OK)

    def _flap(self, there: bool) -> None:
        written = [_listener(FLAPPING)] if there else []
        removed = [] if there else [{"type": "listener", "name": FLAPPING}]
        self._truth.flap(there, sure=self._apply(written, removed))

    def _apply(self, written: list[Tree], removed: list[dict[str, str]]) -> bool:
        body = {"resources": written, "delete": removed, "message": "soak"}
        answer = self._call("POST", f"{_HERE}/apply", body)
        return answer is not None and answer.status == _ACCEPTED

    def _call(self, method: str, path: str, body: object) -> Answer | None:
        """The answer, or None when there is none: nobody listens, or the connection ended first. What clients lose by
        the change is meant.
        """
        self.done += 1
        try:
            answer = self._parley.call(method, path, body)
            # More clients may have come meanwhile.
            while answer.status == _CONFLICT and "loss" in answer.body:
                accepted = answer.body["loss"]["clients"]
                answer = self._parley.call(method, f"{path}?accept_loss={accepted}", body)
        except (OSError, HTTPException):
            answer = None
        self.refused += answer is None or answer.status >= 300
        return answer

    def _read(self, path: str) -> Answer:
        return eventually(
            lambda: self._parley.call("GET", path),
            lambda answer: answer.status in (_OK, _NOT_FOUND),
            within_s=_READY_S,
        )


def _listener(name: str) -> Tree:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": _PORTS[name]}}
    return {
        "@type": TYPE + "envoy.config.listener.v3.Listener",
        "name": name,
        "address": address,
        "default_filter_chain": {},
    }
