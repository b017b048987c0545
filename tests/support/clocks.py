"""A clock that a test moves; and a wrong one for processes of a test: see `shifted_clock/sitecustomize.py`."""

from pathlib import Path

_CODE = Path(__file__).parent / "shifted_clock"


class StandingClock:
    """Says the same time, in seconds, until a test lets some pass."""

    def __init__(self) -> None:
        self._now_s = 1000.0

    def __call__(self) -> float:
        return self._now_s

    def passes(self, seconds: float) -> None:
        """From now on it is so much later."""
        self._now_s += seconds


class WrongClock:
    """A wrong clock for every process that is started with `variables`."""

    def __init__(self, file: Path, shift_s: int) -> None:
        self._file = file
        self.step(shift_s)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that give a process the wrong clock."""
        return {"PYTHONPATH": str(_CODE), "CLOCK_SHIFT": str(self._file)}

    def step(self, shift_s: int) -> None:
        """Let the clock be wrong by so many seconds from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(str(shift_s), encoding="ascii")
        new.replace(self._file)
