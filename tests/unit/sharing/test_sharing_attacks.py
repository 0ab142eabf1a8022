"""Ragged shares: refused in words."""

import pytest

from faircount.core.errors import ShareError
from faircount.sharing import field
from faircount.sharing.additive import combine


def test_rows_of_unequal_length_are_refused() -> None:
    with pytest.raises(ShareError, match="equal length"):
        combine([[1, 2], [3]], 11)
    with pytest.raises(ShareError, match="equal length"):
        field.from_signed([[1, 2], [3]], 11)
