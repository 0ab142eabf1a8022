"""Exact privacy accounting: guarantees, divergences, composition, the paper's theorems."""
