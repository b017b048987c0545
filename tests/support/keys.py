"""Keys for processes on a server database: none of them makes its own."""

import base64

ENCRYPTION_KEYS = base64.urlsafe_b64encode(b"for tests, and for nothing else.").decode()
OTHER_KEYS = base64.urlsafe_b64encode(b"somebody else's, also for tests.").decode()
