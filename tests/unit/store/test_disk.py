"""The folder holds the old directory or the new one, whatever happens in between (law 4, reliability P8, F27)."""

import os
import stat
import threading
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from functools import partial
from pathlib import Path

import pytest

from adsserver.store.disk import DiskCache
from adsserver.store.disk_format import CacheRefused, SavedDirectory, decode_directory
from controlplane.catalog.sealing import KeyRing
from tests.support.figures import measured
from tests.support.last_good import KEYS, Crash, Disk, Saved, altered

OLD, NEW = Saved(1), Saved(2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def served(folder: Path, *, among: tuple[Saved, ...] = (OLD, NEW)) -> SavedDirectory:
    """What a new process reads: the directory, with every part that it leads to verified."""
    cache = DiskCache(folder, KEYS)
    directory = decode_directory(cache.directory_bytes(), KEYS)
    saved = next(each for each in among if each.directory == directory)
    for address, part in saved.parts.items():
        assert cache.part(address) == part
    return directory


def files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} - {"lock"}


def names(saved: Saved) -> set[str]:
    return {address.hex() for address in saved.parts} | {"directory"}


def test_save__nothing_there__another_process_reads_it_and_only_the_owner_may(folder: Path) -> None:
    assert OLD.save(DiskCache(folder, KEYS))

    assert served(folder) == OLD.directory
    assert files(folder) == names(OLD)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}


def test_save__the_next_directory__replaces_what_only_the_last_one_needed(folder: Path) -> None:
    cache = DiskCache(folder, KEYS)
    OLD.save(cache)

    assert NEW.save(cache)

    assert served(folder) == NEW.directory
    assert files(folder) == names(NEW)


def steps_of_a_save(tmp_path: Path) -> int:
    disk = Disk(tmp_path / "count")
    cache = disk.cache()
    OLD.save(cache)
    before = disk.steps
    NEW.save(cache)
    return disk.steps - before


def is_directory(name: str) -> bool:
    return name == "directory"


def is_part(name: str) -> bool:
    return name != "directory"


@pytest.mark.parametrize("lost", [is_directory, is_part])
def test_save__crash_at_any_step__the_old_or_the_new_is_whole_and_the_next_save_mends(
    tmp_path: Path, lost: Callable[[str], bool]
) -> None:
    steps = steps_of_a_save(tmp_path)
    # Two parts, two calls each; the folder, the directory's two, the folder.
    assert steps == 8

    outcomes = []
    for step in range(1, steps + 1):
        folder = tmp_path / f"{step}"
        OLD.save(DiskCache(folder, KEYS))
        for each in folder.iterdir():
            os.utime(each, ns=(0, 0))  # written long ago, and synced
        disk = Disk(folder, fails_at=step, crash=True)
        disk._synced |= {(each.stat().st_ino, 0) for each in folder.iterdir()}

        with pytest.raises(Crash):
            NEW.save(disk.cache())
        disk.lose(lost)

        outcomes.append(served(folder).snapshots["shop"].epoch)
        assert NEW.save(DiskCache(folder, KEYS))
        assert served(folder) == NEW.directory
    # Only when the directory was renamed, before its folder was synced, may it be the new one.
    assert outcomes == [1] * (steps - 1) + [1 if lost is is_directory else 2]


def test_save__disk_full_at_any_step__raises_and_leaves_the_old_without_drafts(tmp_path: Path) -> None:
    steps = range(1, steps_of_a_save(tmp_path))
    for step in steps:
        folder = tmp_path / f"{step}"
        OLD.save(DiskCache(folder, KEYS))
        full = Disk(folder, fails_at=step).cache()

        with pytest.raises(OSError, match="No space left"):
            NEW.save(full)

        assert served(folder) == OLD.directory
        assert not any(name.startswith(".") for name in files(folder))
        assert NEW.save(full)
        assert served(folder) == NEW.directory
    measured(steps_at_which_it_was_full=len(steps))


def test_save__told_to_pause__goes_on_where_it_was_and_the_directory_comes_last(folder: Path) -> None:
    cache = DiskCache(folder, KEYS)
    OLD.save(cache)

    rounds = 0
    while not NEW.save(cache, go_on=lambda: False):
        rounds += 1
        assert served(folder) == OLD.directory

    assert rounds == 2
    assert served(folder) == NEW.directory


def test_save__another_process_is_ahead__its_directory_stays(folder: Path) -> None:
    NEW.save(DiskCache(folder, KEYS))

    assert OLD.save(DiskCache(folder, KEYS))

    assert served(folder) == NEW.directory


def test_save__another_lineage__takes_over_with_a_lower_epoch(folder: Path) -> None:
    restored = Saved(1, lineage="second")
    NEW.save(DiskCache(folder, KEYS))

    assert restored.save(DiskCache(folder, KEYS))

    assert served(folder, among=(restored,)) == restored.directory


def test_save__the_same_is_there__writes_nothing(folder: Path) -> None:
    OLD.save(DiskCache(folder, KEYS))
    disk = Disk(folder)

    assert OLD.save(disk.cache())

    assert disk.steps == 0


def test_save__signed_under_an_older_key__is_signed_anew(folder: Path) -> None:
    rotated = KeyRing((bytes(32), *KEYS.keys))
    OLD.save(DiskCache(folder, KEYS))

    assert OLD.save(DiskCache(folder, rotated))

    # Readable without the old key, as after the end of a rotation.
    assert decode_directory(DiskCache(folder, rotated).directory_bytes(), KeyRing((bytes(32),))) == OLD.directory


@pytest.mark.parametrize("name", sorted(names(OLD)))
def test_save__a_file_was_altered_meanwhile__a_new_process_mends_it(folder: Path, name: str) -> None:
    OLD.save(DiskCache(folder, KEYS))
    (folder / name).write_bytes(altered((folder / name).read_bytes(), -1))

    assert OLD.save(DiskCache(folder, KEYS))

    assert served(folder) == OLD.directory


def test_save__another_process_removed_parts_meanwhile__writes_them_again(folder: Path) -> None:
    cache = DiskCache(folder, KEYS)
    OLD.save(cache)
    other = DiskCache(folder, KEYS)
    OLD.save(other)
    NEW.save(other)
    back = Saved(3)
    back.parts = {**OLD.parts, **back.parts}

    while not back.save(cache):
        pass

    assert served(folder, among=(back,)) == back.directory


def test_save__another_process_holds_the_lock__comes_back_later(folder: Path) -> None:
    cache = DiskCache(folder, KEYS)
    OLD.save(cache)
    with (folder / "lock").open("rb") as held:
        flock(held, LOCK_EX)

        assert not NEW.save(cache)
        assert served(folder) == OLD.directory

    assert NEW.save(cache)


def test_save__files_nothing_refers_to__young_ones_and_foreign_ones_stay(folder: Path) -> None:
    cache = DiskCache(folder, KEYS)
    OLD.save(cache)
    kept, gone = {"a" * 32, ".b.draft", "notes.txt", "A" * 32}, {"c" * 32, ".d.draft"}
    for name in kept | gone:
        (folder / name).write_text("left behind")
    for name in gone | {"notes.txt", "A" * 32}:
        os.utime(folder / name, (0, 0))

    NEW.save(cache)

    assert files(folder) == names(NEW) | kept


def test_save__two_processes_at_once__end_with_the_newest_whole(folder: Path) -> None:
    history = tuple(Saved(epoch) for epoch in range(1, 40))
    failures: list[Exception] = []

    def follow(steps: tuple[Saved, ...]) -> None:
        cache = DiskCache(folder, KEYS)
        try:
            for saved in steps:
                while not saved.save(cache):
                    pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=follow, args=(steps,)) for steps in (history, history[::3] + history[-1:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failures
    assert served(folder, among=history) == history[-1].directory


@pytest.mark.parametrize("name", ["directory", "part"])
def test_read__something_else_in_place_of_a_file__is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    cache = DiskCache(folder, KEYS)
    OLD.save(cache)
    address = next(iter(OLD.parts))
    file = folder / (name if name == "directory" else address.hex())
    read: Callable[[], object] = cache.directory_bytes if name == "directory" else partial(cache.part, address)
    obstacles: tuple[Callable[[], None], ...] = (
        partial(os.mkfifo, file),
        file.mkdir,
        partial(file.symlink_to, tmp_path / "elsewhere"),
    )
    for put in obstacles:
        if file.is_dir():
            file.rmdir()
        else:
            file.unlink()
        put()

        with pytest.raises(CacheRefused):
            read()


def test_read__nothing_saved_yet__is_told_apart_from_damage(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DiskCache(folder, KEYS).directory_bytes()
    with pytest.raises(CacheRefused, match="is missing"):
        DiskCache(folder, KEYS).part(next(iter(OLD.parts)))
