"""The mechanisms of the paper and further ones, with a common interface (`base.py`)."""
