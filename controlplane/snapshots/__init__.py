"""What an environment serves at one epoch: immutable, content-addressed, published by compare-and-set."""
