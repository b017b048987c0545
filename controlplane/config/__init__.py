"""What a process was told before it started: the variables of its environment, and the home where its files are."""
