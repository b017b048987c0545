"""Keys for processes on a server database: none of them makes its own. And such as a test goes over to."""

import base64
from collections.abc import Callable

ENCRYPTION_KEYS = base64.urlsafe_b64encode(b"for tests, and for nothing else.").decode()
OTHER_KEYS = base64.urlsafe_b64encode(b"somebody else's, also for tests.").decode()

NEW_KEY, FOREIGN_KEY = bytes(range(32)), bytes(range(32, 64))
# What the fixture `use_keys` is: takes keys, and returns the mark of the first one.
UseKeys = Callable[..., str]
