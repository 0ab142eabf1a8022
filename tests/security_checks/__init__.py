"""Security checks that `tests/mutants.py` disables one by one, and the tests that must notice."""
