"""Judges what connected clients would lose by a write, before it is stored."""
