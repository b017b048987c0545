"""Why a stream ended, where more than one room has to know it by its words."""

from typing import Final

CLIENT_ENDED: Final = "the client ended the stream"
"""The recorded cause where the client closed its stream, or is gone: which of the two nobody can tell."""
