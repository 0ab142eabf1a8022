"""Words that options of several commands share, so that the same option means the same everywhere."""

DELTA = "Probability with which more than epsilon may be lost"
