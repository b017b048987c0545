"""Asks Envoy about what a build would serve for the first time, and says what came of it.

Only heads that no client has acknowledged are asked about: clients are the better judges of the others. What was asked
before is not asked again: a refusal by itself stays in the database for as long as content and Envoy do, so that a
later build without Envoy, or without time, does not serve what was refused; what was accepted the process remembers.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from django.conf import settings

from controlplane.builder.deep.answers import Judge, KeptAnswers
from controlplane.builder.deep.assembled import SECRET, Shown, bootstrap, shown
from controlplane.builder.deep.envoy import EnvoyJudge, NoEnvoyError, envoy_ready
from controlplane.builder.deep.envoy_refusals import Inspection, Refusal, refusals_kept
from controlplane.builder.deep.showing import SHOWN
from controlplane.builder.stages.fallback import Resolution, resolve
from controlplane.builder.stages.inspect import Answer, EnvoyVerdict, Search, find_refused
from controlplane.builder.stages.wording import NOT_CHECKED, refused_finding
from controlplane.catalog.choices import BlobKind
from controlplane.catalog.heads import Head
from controlplane.catalog.selectors import blobs_read
from xdscore.findings import Finding, Severity
from xdscore.snapshot import EntryKey, Served

Heads = Mapping[EntryKey, Head]
# What gives way may let something else be served, which is asked about in turn; each round is one of such moves.
_MAX_ROUNDS = 4


def inspect(
    *,
    environment_id: int,
    heads: Heads,
    resolution: Resolution,
    accepted: frozenset[bytes],
    clock: Callable[[], float] = time.monotonic,
) -> Inspection:
    """Let Envoy judge the contents that `resolution` would serve and that neither a client acknowledged nor Envoy
    accepted before (`accepted`: their hashes). `clock` is monotonic, in seconds.
    """
    asking = _Asking(environment_id, heads, accepted, clock)
    for _ in range(_MAX_ROUNDS):
        resolution = resolve(heads, asking.refused)
        suspects = asking.suspects(resolution)
        if not suspects:
            break
        asking.ask(suspects, resolution)
        if asking.undecided:
            break
    return asking.inspection(resolve(heads, asking.refused))


class _Asking:
    """What one build asks Envoy, and the answers so far."""

    def __init__(
        self,
        environment_id: int,
        heads: Heads,
        accepted: frozenset[bytes],
        clock: Callable[[], float],
    ) -> None:
        limits = settings.PARLEY.limits
        self._limit: int = limits.deep_validation_resources
        self._heads = heads
        self._accepted = set(accepted)
        budget_s = limits.deep_validation_ms / 1000
        self._judge: Judge | None = None
        self._envoy = self._nobody = ""
        try:
            envoy = envoy_ready(settings.PARLEY.envoy_binary, budget_s)
        except NoEnvoyError as error:
            self._nobody = str(error)
        else:
            judge = EnvoyJudge(envoy, budget_s=budget_s, clock=clock)
            self._judge, self._envoy = KeptAnswers(judge, envoy.version), envoy.version
        kept = refusals_kept(environment_id=environment_id, envoy=self._envoy)
        self._shown: dict[EntryKey, Shown] = {}
        self._not_shown: dict[EntryKey, str] = {}
        self._refusals: dict[str, Refusal] = {}
        self._doubted: dict[EntryKey, str] = {}
        self._left_out = 0
        self.undecided = ""
        self.refused: dict[EntryKey, str] = {}
        for key, head in heads.items():
            if key[0] in SHOWN and head.content is not None and not head.acknowledged:
                before = kept.get(head.content.blob.hex())
                if before is not None:
                    self.refused[key] = before.text
                    self._refusals[before.content] = before

    def suspects(self, resolution: Resolution) -> list[EntryKey]:
        """The keys of the names whose head would be served though neither a client nor Envoy has judged it, oldest
        first.
        """
        found = [
            key
            for key, head in self._heads.items()
            if key[0] in SHOWN
            and head.content is not None
            and head.content.blob not in self._accepted
            and not head.acknowledged
            and key not in self._not_shown
            and key not in self._doubted
            and _serves(resolution, key, head)
        ]
        return sorted(found, key=lambda key: (self._heads[key].revision, key))

    def ask(self, suspects: Sequence[EntryKey], resolution: Resolution) -> None:
        """Let Envoy judge the resources `suspects`, and keep which of them it refuses, accepts or leaves undecided."""
        if self._judge is None:
            self._left_out, self.undecided = len(suspects), self._nobody
            return
        chosen = suspects[-self._limit :]
        self._read(chosen)
        chosen = [key for key in chosen if key in self._shown]
        if not chosen:
            return
        context = self._context(resolution, set(chosen))
        found = find_refused(context, chosen, self._answer)
        self._note(found, chosen)
        if not self.undecided and len(chosen) < len(suspects) - len(self._not_shown):
            self._left_out = len(suspects) - len(chosen) - len(self._not_shown)
            self.undecided = f"at most {self._limit:,} are shown to it at once, the rest with a later build"

    def inspection(self, resolution: Resolution) -> Inspection:
        """The result of everything that was asked. `resolution` is the one to be served without what Envoy refuses."""
        current = {head.content.blob for head in self._heads.values() if head.content is not None}
        return Inspection(
            resolution, frozenset(self._accepted & current), tuple(self._refusals.values()), tuple(self._findings())
        )

    def _findings(self) -> Iterable[Finding]:
        if self.undecided:
            count = f"{self._left_out:,} {'resource' if self._left_out == 1 else 'resources'}"
            yield NOT_CHECKED.finding("", problem=f"{count}, because {self.undecided}")
        for key, text in sorted(self._doubted.items()):
            yield replace(refused_finding(text), severity=Severity.WARNING).about(*key)
        for key, why in sorted(self._not_shown.items()):
            yield NOT_CHECKED.finding("", problem=why).about(*key)

    def _answer(self, keys: Sequence[EntryKey]) -> Answer:
        if self._judge is None:
            raise RuntimeError("nobody is there to answer")  # `ask` looks first
        return self._judge(bootstrap(self._shown[key] for key in keys))

    def _note(self, found: Search, chosen: Sequence[EntryKey]) -> None:
        for key, text in found.refused.items():
            self.refused[key] = text
            # By itself, or only beside something else? The latter may pass, so it is asked again by the next build.
            alone = self._answer([key])
            if alone.verdict is EnvoyVerdict.REFUSED:
                content = self._address(key).hex()
                self._refusals[content] = Refusal(content, self._envoy, alone.text)
        self._doubted |= found.doubted
        settled = found.refused.keys() | found.doubted.keys()
        if found.undecided:
            self.undecided, self._left_out = found.undecided, len([key for key in chosen if key not in settled])
            return
        self._accepted |= {self._address(key) for key in chosen if key not in settled}

    def _context(self, resolution: Resolution, chosen: set[EntryKey]) -> list[EntryKey]:
        """The keys of the resources that Envoy is shown together with the `chosen` ones: all whose head is served;
        where those are too many, only the clusters that the chosen ones name.
        """
        others = [
            key
            for key, head in self._heads.items()
            if key[0] in SHOWN
            and key not in chosen
            and key not in self._doubted
            and head.content is not None
            and (head.acknowledged or head.content.blob in self._accepted)
            and _serves(resolution, key, head)
        ]
        if len(others) + len(chosen) > self._limit:
            named = {("cluster", name) for key in chosen for name in self._shown[key].clusters}
            others = [key for key in others if key in named]
        self._read(others)
        return sorted((key for key in others if key in self._shown), key=lambda key: (self._heads[key].revision, key))

    def _read(self, keys: Sequence[EntryKey]) -> None:
        """Read the resources with these keys, so that Envoy can be shown them. Why one may not be shown is kept only
        where no client has acknowledged it.
        """
        by_address = {self._address(key).hex(): key for key in keys if key not in self._shown}
        for address, kind, data in blobs_read(addresses=by_address):
            key = by_address[address]
            found = SECRET if kind is BlobKind.SECRET else shown(key[0], data)
            if isinstance(found, Shown):
                self._shown[key] = found
            elif not self._heads[key].acknowledged:
                self._not_shown[key] = found.why

    def _address(self, key: EntryKey) -> bytes:
        content = self._heads[key].content
        if content is None:  # only heads with content are asked about
            raise RuntimeError(f"{key} has no content")
        return content.blob


def _serves(resolution: Resolution, key: EntryKey, head: Head) -> bool:
    """Whether the resolution serves the content of this head, not that of an older revision."""
    entry = resolution.entries.get(key)
    return isinstance(entry, Served) and entry.content == head.content
