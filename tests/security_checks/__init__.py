"""The checks that `tests/mutants.py` removes one after the other, and the tests that must notice."""
