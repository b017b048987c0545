"""What an ADS process may use of the memory of its machine, cgroup or share (reliability F32)."""

from pathlib import PurePosixPath

import pytest

from adsserver.limits import memory
from adsserver.limits.memory import allowed_bytes, cgroup_files, least_limit
from xdscore.limits import Limits

GIB = 1 << 30
V1 = "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n"
NONE_OF_V1 = "9223372036854771712"


def test_cgroup_files__version_2__are_those_of_the_cgroup_and_all_above() -> None:
    assert [*cgroup_files("0::/kubepods/pod1\n")] == [
        PurePosixPath("/sys/fs/cgroup/kubepods/pod1/memory.max"),
        PurePosixPath("/sys/fs/cgroup/kubepods/memory.max"),
        PurePosixPath("/sys/fs/cgroup/memory.max"),
    ]


def test_cgroup_files__version_1__are_those_of_the_memory_controller() -> None:
    found = [*map(str, cgroup_files(V1))]

    assert "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes" in found
    assert "/sys/fs/cgroup/memory/memory.limit_in_bytes" in found
    assert not any("systemd" in path for path in found)


@pytest.mark.parametrize(
    ("texts", "machine", "least"),
    [
        (["max\n"], 8 * GIB, 8 * GIB),
        (["max\n", f"{GIB}\n", f"{2 * GIB}\n"], 8 * GIB, GIB),
        ([NONE_OF_V1], 8 * GIB, 8 * GIB),
        (["", "garbage", "-1", "\u0663"], 8 * GIB, 8 * GIB),
        ([f"{GIB}"], 0, GIB),
        ([], 0, 0),
    ],
)
def test_least_limit__of_what_the_files_say__is_the_smallest_that_limits(
    texts: list[str], machine: int, least: int
) -> None:
    assert least_limit(texts, machine) == least


def test_allowed__without_a_number__is_a_workers_share_of_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": str(GIB)}
    monkeypatch.setattr(memory, "_read", lambda path: files.get(str(path), ""))
    monkeypatch.setattr(memory, "_machine_bytes", lambda: 8 * GIB)

    assert allowed_bytes(Limits(), workers=1) == GIB
    assert allowed_bytes(Limits(), workers=4) == GIB // 4
    assert allowed_bytes(Limits(memory_mib=100), workers=4) == 100 * 1024 * 1024


def test_allowed__on_this_machine__is_bounded() -> None:
    assert 0 < allowed_bytes(Limits(), workers=1) < 1 << 50
