"""The paper's evaluation (Section IV), run again: data, studies, costs, sweeps and the report.

`faircount reproduce` and `faircount costs` are the only users of this package. Nothing in a survey
depends on it.
"""
