"""Every mechanism of the paper and two more, behind one contract (`base.py`)."""
