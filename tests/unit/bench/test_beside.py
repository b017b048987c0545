"""The ratios of two revisions side by side."""

from bench.beside import lowest


def test_lowest__of_several_runs__each_ratio_by_itself() -> None:
    one = {"fan-out": {"last": 1.2, "middle": 1.0}, "extras": {"on over off": 1.1}}
    other = {"fan-out": {"last": 1.1, "middle": 1.3}}

    assert lowest([one, other]) == {"fan-out": {"last": 1.1, "middle": 1.0}, "extras": {"on over off": 1.1}}
