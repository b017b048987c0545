"""Every input that the fuzzer found worth keeping: no crash, and no effect on a bystander (reliability I12, S3)."""

from pathlib import Path

import pytest

from adsserver.servicers.unsupported import UnsupportedTypes
from tests.protocol.fuzz import target
from tests.protocol.fuzz.seeds import CORPUS, SEEDS, sotw, written

INPUTS = sorted(CORPUS.iterdir())


@pytest.mark.parametrize("file", INPUTS, ids=lambda file: file.name)
def test_corpus__input__breaks_nothing(file: Path) -> None:
    target.play(file.read_bytes())


def test_corpus__seeds__are_in_it() -> None:
    assert {name: (CORPUS / name).read_bytes() for name in SEEDS} == SEEDS


def test_target__code_that_breaks__is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: UnsupportedTypes, _request: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(UnsupportedTypes, "receive_sotw", broken)

    with pytest.raises(KeyError):
        target.play(written(0, sotw("type.googleapis.com/example.Unknown", "x", node=True)))


def test_target__stream_that_disturbs_others__is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def disturb(stream: target.HostileStream, _data: bytes, _now: float) -> None:
        stream._world.publish()

    monkeypatch.setattr(target.HostileStream, "read", disturb)

    with pytest.raises(AssertionError, match="bystander"):
        target.play(SEEDS["sotw-wildcard"])
