"""What every other package builds on: errors, argument checks, the item list and randomness."""
