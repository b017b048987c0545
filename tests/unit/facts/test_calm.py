"""A batch of facts waits until clients do nothing more for a moment."""

import pytest

from adsserver.store.facts import FactBuffer
from tests.support.facts import content, rejected, respond, stream
from xdscore.limits import Limits


@pytest.mark.parametrize(("noted", "waits"), [(0, {1}), (3, {4}), (1_000, {10, 11})])
def test_wait_for_calm__clients_still_connect__ends_when_none_did_for_a_moment_or_after_half_a_second(
    noted: int, waits: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    buffer = FactBuffer(write=lambda _: None, clock=lambda: sum(waited), limits=Limits())

    class Wake:
        def wait(self, seconds: float) -> bool:
            waited.append(seconds)
            if len(waited) <= noted:
                buffer.opened(stream(len(waited)))
            return False

    monkeypatch.setattr(buffer, "_wake", Wake())

    buffer._wait_for_calm()

    assert len(waited) in waits


def test_wait_for_calm__somebody_refused__does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = FactBuffer(write=lambda _: None, clock=lambda: 0.0, limits=Limits())
    buffer.opened(stream(1))
    buffer.learnt(stream(1), rejected(respond(content("a"))))
    looks = iter([1])
    monkeypatch.setattr(buffer, "_noted", lambda: next(looks))

    buffer._wait_for_calm()

    assert list(looks) == []
