"""Shows what settings would mean to the fleet of now: "of 214 clients, step 1 would be these 4, because"."""

from typing import Final

from controlplane.catalog.rollout_settings import RolloutSettings
from controlplane.clients.fleet_reading import fleet_read
from controlplane.rollouts.cohort import Member, Pick, StepSize, counted, meant, step_cohort
from controlplane.rollouts.fleet import groups_read, members_read
from controlplane.rollouts.stored import sizes_of
from controlplane.rollouts.values import ClientState, Key, Preview, PreviewStep, RolloutClient, Why
from controlplane.snapshots.selectors import entries_published
from xdscore.sides import Side, place_of
from xdscore.snapshot import Served

# A seed of its own, because each rollout draws anew.
_SEED: Final = "preview"
_MAX_SHOWN: Final = 20
# At most so many names, of all types and places in the alphabet, stand for all that clients ask for.
_MAX_NAMES: Final = 10_000


def preview_of(environment_key: str, settings: RolloutSettings) -> Preview:
    """What these settings would mean to the fleet that is connected now, if all that it is served changed."""
    groups = groups_read(environment_key=environment_key, keys=settings.groups)
    asked = fleet_read(environment_key=environment_key).asked
    names: list[Key] = [
        key
        for key, entry in sorted(entries_published(environment_key=environment_key).items())
        if isinstance(entry, Served) and key[0] in asked and key[0] not in settings.immediate
    ]
    some = names[:: -(-len(names) // _MAX_NAMES) or 1]
    fleet = members_read(environment_key=environment_key, names=some, groups=groups)
    members = fleet.members
    sizes = sizes_of(settings) if settings.stages else ()
    inside: set[str] = set()
    steps = []
    left_out: tuple[str, ...] = ()
    for number, (size, how_many) in enumerate(zip(sizes, meant(sizes, members), strict=True)):
        cohort = step_cohort(size, members, inside=inside, seed=_SEED, prefer_group=settings.prefer_group or None)
        joining = _joining(size, cohort.picks, cohort.permille, members, inside)
        inside |= {member.digest for member, _, _ in joining}
        shown = tuple(_client(*each, step=number + 1) for each in joining[:_MAX_SHOWN])
        chance = size.permille is not None and size.permille < 1000
        steps.append(PreviewStep(number + 1, str(size), how_many, shown, by_chance=chance))
        left_out = cohort.uncovered
    return Preview(len(members), counted(members), tuple(steps), left_out)


_Joining = tuple[Member, Why, str]


def _joining(
    size: StepSize, picks: tuple[Pick, ...], permille: int, members: tuple[Member, ...], inside: set[str]
) -> list[_Joining]:
    """Who joins with a step, why, and in words."""
    found: list[_Joining] = [(pick.member, pick.why, pick.because) for pick in picks]
    known = inside | {pick.member.digest for pick in picks}
    for member in members:
        if member.digest in known:
            continue
        if named := sorted(member.groups & set(size.groups)):
            found.append((member, Why.GROUP, f"it is a member of the client group '{named[0]}'"))
        elif place_of(_SEED, member.digest) < permille:
            found.append((member, Why.SHARE, f"it is one of {permille / 10:g} % that are drawn by chance"))
    return found


def _client(member: Member, why: Why, because: str, *, step: int) -> RolloutClient:
    return RolloutClient(
        client=member.client,
        node_id=member.node_id,
        identity=member.identity,
        kind=member.kind,
        side=Side.CANDIDATE,
        why=why,
        because=because,
        step=step,
        state=ClientState.WAITING if member.asks else ClientState.UNEXPOSED,
    )
