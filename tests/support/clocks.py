"""A wrong clock for processes of a test: see `shifted_clock/sitecustomize.py`."""

from pathlib import Path

_CODE = Path(__file__).parent / "shifted_clock"


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
