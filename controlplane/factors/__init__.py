"""Second factors of people who sign in by a password of Parley's own, and what somebody proved lately."""
