"""Counts of the paper's two public data sets, typed in so that the figures run without downloads.

`loaders` computes the same tables from the original files. Both sources here are parts of the
originals; wherever a result based on them is shown, `GOWALLA_LIMITS` and `CENSUS_LIMITS` say so.
"""

GOWALLA_SOURCE = (
    "SNAP loc-gowalla (Cho, Myers, Leskovec, KDD 2011) as filtered by Liu et al. (PVLDB 2017)"
)
GOWALLA_LIMITS = (
    "a filtered part of Gowalla: users and places with too few visits (15 and 10) are left out, "
    "and 4,915 of the 8,600 users have only their held-out part"
)
CENSUS_SOURCE = "UCI Census-Income (KDD), wage per hour in cents"
CENSUS_LIMITS = "the test part only: 99,762 of 299,285 rows"

# The region of Section IV-A1: latitude from, to; longitude from, to.
BOX = (30.0, 45.0, -100.0, -80.0)

# The paper partitions the box "into cells of 5 x 5". Read literally, a cell has 5 x 5 degrees:
# 3 rows from south to north, 4 columns from west to east.
CELLS_12 = (3, 4)

# The other reading: a grid of 5 by 5 cells, of 3 x 4 degrees each.
CELLS_25 = (5, 5)

# Users by most visited cell, row by row from the south-west. Of equally visited cells the first one
# counts.
GOWALLA_12 = (
    5370, 42, 44, 592,
    538, 367, 181, 246,
    13, 182, 858, 167,
)  # fmt: skip

# The same users on the grid of 5 by 5.
GOWALLA_25 = (
    5146, 49, 28, 17, 90,
    674, 23, 27, 528, 131,
    4, 149, 63, 110, 1,
    3, 190, 5, 880, 180,
    1, 168, 21, 37, 75,
)  # fmt: skip

# Persons whose wage per hour is exactly 0, mostly because they are not paid by the hour.
WAGE_ZERO = 94178

# The other persons: entry b counts wages from 100 b to 100 b + 99. Intervals not listed are empty.
WAGES = {
    1: 6, 2: 63, 3: 28, 4: 538, 5: 801, 6: 621, 7: 600, 8: 494, 9: 364, 10: 390, 11: 242, 12: 237,
    13: 188, 14: 157, 15: 158, 16: 131, 17: 99, 18: 101, 19: 79, 20: 70, 21: 25, 22: 38, 23: 30,
    24: 15, 25: 29, 26: 8, 27: 10, 28: 7, 29: 4, 30: 10, 31: 2, 32: 1, 33: 1, 34: 1, 35: 2, 36: 1,
    37: 3, 38: 2, 40: 2, 42: 2, 44: 1, 45: 1, 46: 1, 50: 2, 54: 1, 55: 3, 57: 1, 60: 1, 65: 2,
    70: 2, 74: 1, 75: 1, 77: 1, 80: 2, 88: 2, 99: 2,
}  # fmt: skip
