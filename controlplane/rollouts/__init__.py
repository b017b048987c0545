"""Rollouts: no change reaches the fleet before real clients have taken it (rollouts.md).

Decides who is asked first (`cohort`), what their answers mean (`judge`), and acts on that (`services`): further,
everybody, or back. The pure parts know no clock, database or chance: the judge is apart from the actor (R11).
"""
