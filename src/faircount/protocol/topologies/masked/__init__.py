"""Users hide their vectors with pairwise masks on a random graph; keys of users who vanish are recovered."""
