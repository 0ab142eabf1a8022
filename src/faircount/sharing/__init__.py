"""Secret sharing: shares of vectors over F_q and of keys, and the bytes that carry them."""
