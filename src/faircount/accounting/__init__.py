"""Exact privacy: guarantees as values, divergences, composition, and the paper's theorems beside them."""
