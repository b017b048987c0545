"""Rollouts in miniature: two workers, a database, people who write, roll back and switch modes, and whatever can go
wrong.

One environment with one resource, whose rollouts have two steps. What a step of a real process does in one transaction
is one step here; between any two steps anything else may happen, and a process may die. A worker looks, and later does
what follows from what it saw: nothing if that is not what it finds. Hints need no place in the model: a look is always
possible and never certain. Nor does the claim that keeps workers apart: it ends with a connection, and its worker may
go on.

The steps are those of `controlplane.rollouts.services` and of `controlplane.catalog.services.staging`. A build is one
step, for `model` has what happens within. tests/services/rollouts/test_protocol_model.py walks through this model and
the real services side by side. `Flaws` switches off what they rely on, one by one.
"""

from collections.abc import Iterator
from dataclasses import replace

from tests.protocol.publish.explorer import Model, Step
from tests.protocol.publish.rollout_world import (
    BAD,
    GOOD,
    NO_TABLE,
    STEPS,
    Database,
    Flaws,
    Published,
    Row,
    Seen,
    World,
)


def steps(now: World, flaws: Flaws) -> Iterator[Step[World]]:
    """Everything that may happen next."""
    yield from _people(now, flaws)
    yield from _restores(now)
    for number, seen in enumerate(now.workers):
        yield from _works(now, number, seen, flaws)
    database = now.database
    if database.built < database.generation:
        yield Step("build", replace(now, database=_built(database)))


# --- People


def _people(world: World, flaws: Flaws) -> Iterator[Step[World]]:
    database = world.database
    if not world.acts:
        return

    def done(changed: Database) -> World:
        return replace(world, database=changed, acts=world.acts - 1)

    for taste in (GOOD, BAD):
        content = f"{database.number + 1}{database.mark}{taste}"
        yield Step(f"write {taste}", done(_written(database, content)), faulty=True)
    yield Step("write now", done(_everywhere(database, f"{database.number + 1}{database.mark}{GOOD}")), faulty=True)
    for content in sorted(database.promoted):
        if (database.head, database.state) != (content, ""):
            yield Step(f"roll back to {content}", done(_rolled_back(database, content, flaws)), faulty=True)
    yield Step("switch off" if database.mode else "switch on", done(_switched(database, flaws)), faulty=True)
    row = database.open
    if row is None:
        return
    if row.state == "paused":
        resumed = replace(row, state="running", lineage=database.lineage, evidence="")
        yield Step("resume", done(_put(database, resumed)), faulty=True)
    else:
        yield Step("pause", done(_put(database, replace(row, state="paused"))), faulty=True)
        left = database.state == "candidate" or Flaws.ADVANCE_WITHOUT in flaws
        again = not row.evidence and row.last_advance == row.step and row.step > 0
        if left and not again:
            yield Step("advance", done(_gone_on(database, row, advance=True)), faulty=True)
    yield Step("abort", done(_taken_back(database, row, "aborted")), faulty=True)


def _written(database: Database, content: str) -> Database:
    stages = database.mode or database.table != NO_TABLE
    if not stages:
        return _everywhere(database, content)
    # R5: what changes a name of the open rollout joins it.
    state = "candidate" if database.state == "candidate" else "waiting"
    return replace(_counted(database), number=database.number + 1, head=content, state=state)


def _everywhere(database: Database, content: str) -> Database:
    number = database.number + (database.head != content)
    promoted = database.promoted | {content}
    return replace(_counted(database), number=number, head=content, stable=content, state="", promoted=promoted)


def _rolled_back(database: Database, content: str, flaws: Flaws) -> Database:
    back = _written(database, content) if Flaws.ROLLBACK_STAGED in flaws else _everywhere(database, content)
    rows = tuple(replace(row, rolled_back=True) if row.open else row for row in back.rows)
    return replace(back, back_at=back.generation, rows=rows)


def _switched(database: Database, flaws: Flaws) -> Database:
    switched = replace(_counted(database), mode=not database.mode)
    if database.mode and Flaws.OFF_FORGETS not in flaws:
        return _promoted_if(switched, "waiting")
    return switched


# --- Restores


def _restores(world: World) -> Iterator[Step[World]]:
    """A backup, its restore, and the ADS process that notices it."""
    database, published, held = world.database, world.database.published, world.held
    if world.backups:
        yield Step("back up", replace(world, backup=database, backups=world.backups - 1), faulty=True)
    if world.backup is not None and world.backup != database:
        back = replace(world.backup, mark="'")
        yield Step("restore", replace(world, database=back, backup=None), faulty=True)
    if published is None or not (world.backup or world.backups or database.mark):
        return  # there is nothing to notice
    if held is not None and held.lineage == database.lineage and _lost(held, published):
        renewed = replace(_counted(database), lineage=database.lineage + 1)
        yield Step("renew lineage", replace(world, database=renewed))
    elif held is None or (held.lineage, held.epoch) != (published.lineage, published.epoch):
        yield Step("ADS loads", replace(world, held=published))


def _lost(held: Published, newest: Published) -> bool:
    return newest.lineage == held.lineage and newest != held and newest.epoch <= held.epoch


# --- Workers


def _works(world: World, number: int, seen: Seen | None, flaws: Flaws) -> Iterator[Step[World]]:
    database = world.database

    def put(saw: Seen | None, stored: Database = database) -> World:
        workers = tuple(saw if place == number else each for place, each in enumerate(world.workers))
        return replace(world, workers=workers, database=stored)

    if seen is None:
        plan = plan_of(database, flaws)
        if plan:
            yield Step(f"worker sees that it is to {plan}", put(_look(database, plan)))
        return
    yield Step("worker dies", put(None), faulty=True)
    if not _is_still(seen, database, flaws):
        yield Step("worker finds it moved", put(None))
    elif seen.plan == "stop":
        yield Step("worker does: stop", put(None, replace(_counted(database), state="stopped")))
    elif seen.plan == "take back" and Flaws.TAKES_BACK_BY_HALVES in flaws:
        half = _ended(database, _mine(database, seen), "reverted")
        yield Step("worker does: take back by halves", put(_look(half, "stop"), half))
    else:
        yield Step(f"worker does: {seen.plan}", put(None, _done(seen, database, flaws)))


def plan_of(database: Database, flaws: Flaws = Flaws.NONE) -> str:
    """What a worker that looks now would do; empty: nothing."""
    row = database.open
    if row is None:
        return "open" if database.mode and database.state == "waiting" else ""
    if database.table[0] != row.id or database.state != "candidate":
        return "settle"
    return "" if row.state == "paused" else _plan_on(database, row, flaws)


def _plan_on(database: Database, row: Row, flaws: Flaws) -> str:
    """What a worker would do about a rollout that is neither paused nor over."""
    if row.noted != database.head or (row.lineage != database.lineage and Flaws.RESTORE_GOES_ON not in flaws):
        return "settle"
    if database.built < database.generation or not _answered(database):
        return ""
    if not row.evidence:
        return "begin"
    if database.head.endswith(BAD):
        return "take back"
    return "step" if row.step + 1 < STEPS else "promote"


def _look(database: Database, plan: str) -> Seen:
    # What waits is nothing to a rollout that is open.
    counts = plan == "open" or database.state == "candidate"
    name = (database.state, database.number, database.head) if counts else ("", 0, "")
    return Seen(plan, database.mode, database.lineage, database.open, database.table, name)


def _is_still(seen: Seen, database: Database, flaws: Flaws) -> bool:
    if Flaws.NO_FENCE in flaws:
        return seen.plan == "open" or database.open is not None
    now = _look(database, seen.plan)
    if seen.plan == "open":
        if Flaws.OPENS_BESIDE in flaws:
            return seen.mode == now.mode
        return now.row is None and (seen.mode, seen.name) == (now.mode, now.name)
    if Flaws.NUMBERS_ALONE in flaws:
        return _numbers(seen) == _numbers(now)
    if Flaws.NAMES_UNSEEN in flaws:
        return seen.row == now.row
    lineage = seen.lineage == now.lineage or Flaws.LINEAGE_UNSEEN in flaws
    return lineage and (seen.row, seen.table, seen.name) == (now.row, now.table, now.name)


def _numbers(seen: Seen) -> tuple[object, ...]:
    row = seen.row
    mark = (row.id.rstrip("'"), row.state, row.step, row.generation, bool(row.evidence)) if row is not None else None
    return (mark, seen.table[1], seen.name[:2])


def _done(seen: Seen, database: Database, flaws: Flaws) -> Database:
    match seen.plan:
        case "open":
            return _opened(database)
        case "settle":
            return _settled(seen, database, flaws)
        case "begin":
            return _put(database, replace(_mine(database, seen), evidence=f"now{database.mark}"))
        case "take back":
            return _taken_back(database, _mine(database, seen), "reverted")
        case _:
            return _gone_on(database, _mine(database, seen))


def _opened(database: Database) -> Database:
    counted = _counted(database)
    row = Row(f"r{len(database.rows) + 1}{database.mark}", database.lineage, database.head, counted.generation)
    state = "candidate" if database.state == "waiting" else database.state
    return replace(counted, state=state, table=(row.id, 0), rows=(*database.rows, row))


def _settled(seen: Seen, database: Database, flaws: Flaws) -> Database:
    row = _mine(database, seen)
    left = database.state == "candidate"
    if database.table[0] != row.id or (database.back_at > row.generation and not left):
        return _ended(database, row, "aborted")
    paused = _put(database, replace(row, state="paused"))
    if row.lineage != database.lineage and Flaws.PAUSES_NOTHING in flaws:
        return paused
    if not left:
        return _ended(database, row, "done")
    if row.lineage != database.lineage and Flaws.RESTORE_GOES_ON not in flaws:
        return paused
    return _put(database, replace(row, noted=database.head, evidence=""))


def _gone_on(database: Database, row: Row, *, advance: bool = False) -> Database:
    if row.step + 1 == STEPS:
        return _ended(_promoted_if(_counted(database), "candidate"), row, "done")
    counted, step = _counted(database), row.step + 1
    last = step if advance else row.last_advance
    stepped = replace(row, step=step, evidence="", generation=counted.generation, last_advance=last)
    return _put(replace(counted, table=(row.id, step)), stepped)


def _taken_back(database: Database, row: Row, state: str) -> Database:
    stopped = "stopped" if database.state == "candidate" else database.state
    return _ended(replace(_counted(database), state=stopped), row, state)


def _ended(database: Database, row: Row, state: str) -> Database:
    """The candidate side ends with the rollout; what it still holds waits, or is everybody's where rollouts are off."""
    counted = _counted(database)
    if counted.state == "candidate":
        counted = replace(counted, state="waiting")
    if not counted.mode:
        counted = _promoted_if(counted, "waiting")
    return _put(replace(counted, table=NO_TABLE), replace(row, state=state, generation=counted.generation))


# --- The database


def _built(database: Database) -> Database:
    candidate = database.head if database.state == "candidate" else database.stable
    before = database.published
    epoch = before.epoch + 1 if before is not None and before.lineage == database.lineage else 1
    published = Published(database.lineage, epoch, database.stable, candidate, database.table)
    if before is not None and replace(published, epoch=before.epoch) == before:
        published = before
    return replace(database, built=database.generation, published=published)


def _counted(database: Database) -> Database:
    return replace(database, generation=database.generation + 1)


def _promoted_if(database: Database, state: str) -> Database:
    if database.state != state:
        return database
    return replace(database, state="", stable=database.head, promoted=database.promoted | {database.head})


def _put(database: Database, row: Row) -> Database:
    return replace(database, rows=tuple(row if each.id == row.id else each for each in database.rows))


def _mine(database: Database, seen: Seen) -> Row:
    """The row, as it is now, of the rollout that a worker saw; that of the open one where there is none."""
    known = [row for row in database.rows if seen.row is not None and row.id == seen.row.id]
    found = known[0] if known else database.open
    assert found is not None
    return found


# --- Rules


def model(flaws: Flaws = Flaws.NONE) -> Model[World]:
    """Rollouts with these mistakes, and the rules that they have to keep."""
    return Model(lambda world: steps(world, flaws), _broken, _converged, _ordered)


def _broken(world: World, step: Step[World]) -> str | None:
    before, after = world.database, step.to.database
    open_ones = [row.id for row in after.rows if row.open]
    if len(open_ones) > 1 or (after.table[0] or None) != next(iter(open_ones), None):
        return "R12: one rollout at most is open, with its candidate side"
    published = after.published
    if published is not None and published.stable not in after.promoted:
        return "R2: the stable side has what was stable or promoted"
    if published is not None and published.table == NO_TABLE and published.candidate != published.stable:
        return "R2: without a rollout there is one side"
    if step.name.startswith("roll back") and (after.state or after.stable != after.head):
        return "R13: a rollback reaches both sides"
    if step.name == "restore":
        return None
    return _moved_wrongly(world, step, before, after)


def _moved_wrongly(world: World, step: Step[World], before: Database, after: Database) -> str | None:
    """What is wrong with how rollouts moved from one state of the database to the next."""
    rows = {row.id: row for row in after.rows}
    if _again(before, after):
        return "R7: no later rollout has what was taken back"
    for row in before.rows:
        now = rows.get(row.id)
        if now is None or (not row.open and now != row):
            return "R12: what ended a rollout happens once"
        if not row.step <= now.step <= row.step + 1:
            return "R1: the cohort only grows, step by step"
        if row.open and not now.open and row.rolled_back and now.state != "aborted":
            return "R13: a rollback aborts the open rollout"
        over = row.open and now.state in ("done", "reverted") and before.state == "candidate"
        if (over or now.step != row.step) and step.name.startswith("worker"):
            wrong = _not_resting(world, step, row, before)
            if wrong is not None:
                return wrong
    return None


def _not_resting(world: World, step: Step[World], row: Row, before: Database) -> str | None:
    """What a move of a worker does not rest on, though it has to."""
    if row.lineage != before.lineage:
        return "R12: a restore pauses what was open"
    if not _rests_on(world, step, row, before):
        return "R12: who moves a step has seen it, and what it is about"
    return None


def _again(before: Database, after: Database) -> bool:
    """Whether a rollout was opened with what another one took back."""
    back = {row.noted for row in before.rows if row.state == "reverted"}
    return any(row.noted in back for row in after.rows[len(before.rows) :])


def _rests_on(world: World, step: Step[World], row: Row, before: Database) -> bool:
    """Whether the worker that made a step had seen that its rollout was there, with evidence about this content."""
    now = list(step.to.workers)
    for each in world.workers:
        if each in now:
            now.remove(each)
            continue
        saw = each.row if each is not None else None
        if saw is None or each is None or (saw.id, saw.step, saw.evidence) != (row.id, row.step, row.evidence):
            return False
        return bool(row.evidence) and each.name[2] == before.head == row.noted and _answered(before)
    return False


def _answered(database: Database) -> bool:
    """Whether the cohort can have answered to the present step: it was published before."""
    return database.published is not None and database.published.table == database.table


def _converged(world: World) -> bool:
    database = world.database
    published, row = database.published, database.open
    if published is None or database.built != database.generation or published.stable != database.stable:
        return False
    if row is not None:
        return row.state == "paused"
    return database.state in ("", "stopped")


def _ordered(world: World) -> World:
    """Workers are alike: which is which makes no other state."""
    return replace(world, workers=tuple(sorted(world.workers, key=_key)))


def _key(seen: Seen | None) -> tuple[object, ...]:
    if seen is None:
        return ("",)
    return (seen.plan, seen.mode, seen.lineage, seen.row or Row("", 0, "", 0), seen.table, seen.name)
