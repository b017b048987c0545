"""One module per noun; each has `register`, which adds its commands to the tree."""
