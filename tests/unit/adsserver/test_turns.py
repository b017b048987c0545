"""Nobody waits for more than one of anybody else's."""

import asyncio

from adsserver.servicers.turns import Turns


async def taking(turns: Turns, key: str, order: list[str]) -> None:
    await turns.take(key)
    order.append(key)


async def waiting(turns: Turns, keys: str, order: list[str]) -> list["asyncio.Task[None]"]:
    tasks = [asyncio.create_task(taking(turns, key, order)) for key in keys]
    await asyncio.sleep(0)
    return tasks


async def given(turns: Turns, count: int) -> None:
    for _ in range(count):
        turns.give()
        await asyncio.sleep(0)


async def test_turns__many_wait_for_one_key__another_is_next_but_one() -> None:
    turns, order = Turns(), list[str]()
    tasks = await waiting(turns, "aaaa", order)
    tasks += await waiting(turns, "bbc", order)

    await given(turns, 7)

    assert "".join(order) == "aabcaba"
    assert all(task.done() for task in tasks)
    await turns.take("d")  # free again, nobody is kept


async def test_turns__who_waits_goes_away__is_passed_over_and_not_kept() -> None:
    turns, order = Turns(), list[str]()
    first, gone, last = await waiting(turns, "aba", order)

    gone.cancel()
    await asyncio.gather(first, gone, return_exceptions=True)
    await given(turns, 1)

    assert order == ["a", "a"]
    assert last.done()
    assert not turns._waiting


async def test_turns__turn_comes_as_its_taker_goes_away__the_next_has_it() -> None:
    turns, order = Turns(), list[str]()
    _, gone, last = await waiting(turns, "abc", order)

    turns.give()
    gone.cancel()
    await asyncio.gather(gone, last, return_exceptions=True)

    assert order == ["a", "c"]
