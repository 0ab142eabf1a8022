"""What the kinds of questions are made of: weighted bits, constraints, and blocks of cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from faircount.core.errors import ParameterError

# Pairs of the position of a bit and its weight in a sum.
Weights = tuple[tuple[int, int], ...]


class BlockKind(StrEnum):
    """How one person's answer may change the cells of a block."""

    ONE = "one"  # exactly one of the cells is 1, so their counts add up to the number of people
    ANY = "any"  # every cell is 0 or 1
    MOST = "most"  # every cell is 0 or 1, and at most `bound` of them are 1
    NUMBER = "number"  # a single cell with a number from 0 to `bound`


@dataclass(frozen=True, slots=True)
class Block:
    """Opened cells that noise protects together.

    kind:  how one answer may change them
    cells: how many they are
    bound: for MOST how many cells one person may choose, for NUMBER the largest number
    """

    kind: BlockKind
    cells: int
    bound: int = 1

    @property
    def reach(self) -> int:
        """By how much one person can change a cell."""
        return self.bound if self.kind is BlockKind.NUMBER else 1


@dataclass(frozen=True, slots=True)
class Constraint:
    """A weighted sum of bits that has a public value in every valid report.

    >>> from faircount.core.questions import Constraint
    >>> Constraint(((0, 1), (1, 1), (2, 1)), 1).least_modulus
    3
    """

    weights: Weights
    value: int

    @property
    def least_modulus(self) -> int:
        """From this modulus on, the constraint holds modulo q only if it holds for integers.

        Any sum of bits lies between `lowest` and `highest`, the sums of the negative and of the
        positive weights. Two of them that differ by less than q are equal if they are so modulo q.
        """
        lowest = sum(weight for _, weight in self.weights if weight < 0)
        highest = sum(weight for _, weight in self.weights if weight > 0)
        return max(highest - self.value, self.value - lowest) + 1

    def check_modulus(self, modulus: int) -> None:
        """Refuse a field in which a false report could satisfy the constraint."""
        # check: constraint-modulus - weights that wrap around let a false report pass
        if modulus < self.least_modulus:
            raise ParameterError(
                f"a constraint needs a modulus of at least {self.least_modulus}, not {modulus}: "
                "its weights would wrap around"
            )

    def shift(self, offset: int) -> "Constraint":
        """Return the same constraint on bits that begin at `offset`."""
        return Constraint(shift_weights(self.weights, offset), self.value)

    def is_met(self, bits: Sequence[int]) -> bool:
        """Whether the bits have the public value."""
        return weighted_sum(self.weights, bits) == self.value


def shift_weights(weights: Weights, offset: int) -> Weights:
    """Return the weights for bits that begin at `offset`."""
    return tuple((position + offset, weight) for position, weight in weights)


def weighted_sum(weights: Weights, bits: Sequence[int]) -> int:
    """Return the sum of the bits times their weights."""
    return sum(weight * bits[position] for position, weight in weights)


def number_weights(largest: int) -> tuple[int, ...]:
    """Return weights of bits whose sums are exactly the numbers from 0 to `largest`.

    They are powers of two, except for the last one: all bits together make the largest number.

    >>> from faircount.core.questions.blocks import number_weights
    >>> number_weights(10)
    (1, 2, 4, 3)
    """
    length = largest.bit_length()
    powers = [1 << place for place in range(length - 1)]
    return (*powers, largest - (1 << (length - 1)) + 1)


def number_bits(number: int, largest: int) -> tuple[int, ...]:
    """Return bits of a number in [0, largest] under `number_weights(largest)`."""
    weights = number_weights(largest)
    # The last bit is set only where the others cannot reach the number.
    last = int(number > sum(weights[:-1]))
    rest = number - last * weights[-1]
    return (*((rest >> place) & 1 for place in range(len(weights) - 1)), last)
