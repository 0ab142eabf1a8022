"""Two-stage sampling (Algorithms 3 and 4): elected users add up the shares of an item."""
