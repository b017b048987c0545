"""The candidate side of a snapshot as bytes (rollouts.md R2)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.xdscore.test_chunks import ENTRIES, KEYS
from tests.unit.xdscore.test_sides import TABLES
from xdscore.chunks import ChunkError, encode_chunk, pack
from xdscore.rollout_part import FORMAT, CandidatePart, decode_rollout, encode_rollout
from xdscore.sides import RolloutTable

PARTS = st.builds(CandidatePart, TABLES, st.dictionaries(KEYS, st.none() | ENTRIES, max_size=8))
TABLE = RolloutTable("r1", 0, frozenset(), (), 10, "seed")


@given(PARTS)
def test_decode_rollout__any_candidate_side__is_what_was_encoded(part: CandidatePart) -> None:
    assert decode_rollout(encode_rollout(part)) == part


@given(PARTS)
def test_encode_rollout__equal_parts_in_another_order__are_equal_bytes(part: CandidatePart) -> None:
    turned = CandidatePart(part.table, {key: part.diff[key] for key in reversed(list(part.diff))})

    assert encode_rollout(turned) == encode_rollout(part)


@pytest.mark.parametrize(
    "tree",
    [
        [],
        {},
        {"table": TABLE.as_json()},
        {"diff": []},
        {"table": {}, "diff": []},
        {"table": TABLE.as_json(), "diff": {}, "more": 1},
        {"table": TABLE.as_json(), "diff": [["cluster", "a", "?"]]},
        {"table": TABLE.as_json(), "diff": [["cluster", "a"]]},
        {"table": TABLE.as_json(), "diff": [["cluster", 7, "-"]]},
        {"table": TABLE.as_json(), "diff": [["cluster", "a", "-", "more"]]},
        {"table": TABLE.as_json(), "diff": [["cluster", "a", "-"], ["cluster", "a", "r"]]},
        {"table": TABLE.as_json(), "diff": [7]},
    ],
)
def test_decode_rollout__anything_else__is_refused(tree: object) -> None:
    with pytest.raises(ChunkError, match="unreadable rollout"):
        decode_rollout(pack(json.dumps(tree).encode(), FORMAT))


def test_decode_rollout__another_format_or_cut_off__is_refused() -> None:
    data = encode_rollout(CandidatePart(TABLE, {}))

    for other in (b"", b"\xff" + data[1:], data[:-1], encode_chunk([])):
        with pytest.raises(ChunkError):
            decode_rollout(other)
