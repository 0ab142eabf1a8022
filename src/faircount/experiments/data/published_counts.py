"""Numbers of the paper's two public data sets, typed in: facts, a few dozen of them, so that experiments run anywhere.

`loaders` makes the same tables from the original files. Both sources here are parts of the originals; say so
(`GOWALLA_LIMITS`, `CENSUS_LIMITS`) wherever a result made with them is shown.
"""

GOWALLA_SOURCE = "SNAP loc-gowalla (Cho, Myers, Leskovec, KDD 2011) as filtered by Liu et al. (PVLDB 2017)"
GOWALLA_LIMITS = (
    "a filtered part of Gowalla: users and places with too few visits (15 and 10) are left out, "
    "and 4,915 of the 8,600 users have only their held-out part"
)
CENSUS_SOURCE = "UCI Census-Income (KDD), wage per hour in cents"
CENSUS_LIMITS = "the test part only: 99,762 of 299,285 rows"

BOX = (30.0, 45.0, -100.0, -80.0)
"""The paper's box: latitude from, to; longitude from, to."""

CELLS_12 = (3, 4)
"""Rows (south to north) and columns (west to east) of cells of 5 x 5 degrees: the literal reading of the paper."""

CELLS_25 = (5, 5)
"""A grid of 5 by 5 cells, of 3 x 4 degrees each: the other reading."""

GOWALLA_12 = (
    5370, 42, 44, 592,
    538, 367, 181, 246,
    13, 182, 858, 167,
)  # fmt: skip
"""Users by most visited cell, row by row from the south; of equally visited cells the first counts."""

GOWALLA_25 = (
    5146, 49, 28, 17, 90,
    674, 23, 27, 528, 131,
    4, 149, 63, 110, 1,
    3, 190, 5, 880, 180,
    1, 168, 21, 37, 75,
)  # fmt: skip
"""The same users on the grid of 5 by 5."""

WAGE_ZERO = 94178
"""Persons whose wage per hour is exactly 0: mostly those who are not paid by the hour."""

WAGES = {
    1: 6, 2: 63, 3: 28, 4: 538, 5: 801, 6: 621, 7: 600, 8: 494, 9: 364, 10: 390, 11: 242, 12: 237, 13: 188, 14: 157,
    15: 158, 16: 131, 17: 99, 18: 101, 19: 79, 20: 70, 21: 25, 22: 38, 23: 30, 24: 15, 25: 29, 26: 8, 27: 10, 28: 7,
    29: 4, 30: 10, 31: 2, 32: 1, 33: 1, 34: 1, 35: 2, 36: 1, 37: 3, 38: 2, 40: 2, 42: 2, 44: 1, 45: 1, 46: 1, 50: 2,
    54: 1, 55: 3, 57: 1, 60: 1, 65: 2, 70: 2, 74: 1, 75: 1, 77: 1, 80: 2, 88: 2, 99: 2,
}  # fmt: skip
"""Persons by non-zero wage: entry b holds the wages from 100 b to 100 b + 99; intervals not listed are empty."""
