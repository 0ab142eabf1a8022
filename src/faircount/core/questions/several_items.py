"""Questions to which people choose any, or at most so many, of several items."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions.blocks import (
    Block,
    BlockKind,
    Constraint,
    Weights,
    number_bits,
    number_weights,
)
from faircount.core.questions.question import (
    Question,
    check_items,
    check_position,
)


@dataclass(frozen=True, kw_only=True)
class SeveralItems(Question):
    """Several items, of which a person may choose up to `limit`."""

    items: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "items", check_items("items", self.items))

    @property
    @abstractmethod
    def limit(self) -> int:
        """How many items one person may choose."""

    @property
    def _is_limited(self) -> bool:
        # With all items allowed and nothing to skip, every pattern of bits is a valid answer.
        return self.may_be_missing or self.limit < len(self.items)

    @property
    def bits(self) -> int:
        """A bit per item, then that of "prefer not to say", then the slack of the limit."""
        slack = len(number_weights(self.limit)) if self._is_limited else 0
        return self.cells + slack

    @property
    def constraint(self) -> Constraint | None:
        """Chosen items, `limit` for skip, and the slack add up to the limit."""
        if not self._is_limited:
            return None
        weights = [(item, 1) for item in range(len(self.items))]
        if self.may_be_missing:
            # Who skips has used up the limit, and can choose nothing besides.
            weights.append((len(self.items), self.limit))
        # The public value is the limit. Slack of two bits that must add up to 3 would be shorter,
        # and would let a report choose three items where two are allowed.
        slack = number_weights(self.limit)
        weights += [(self.cells + place, weight) for place, weight in enumerate(slack)]
        return Constraint(tuple(weights), self.limit)

    @property
    def cell_weights(self) -> tuple[Weights, ...]:
        """The count of every item, and of "prefer not to say"; never the slack."""
        return tuple(((bit, 1),) for bit in range(self.cells))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The items, and "prefer not to say" by itself."""
        if self.limit < len(self.items):
            items = Block(BlockKind.MOST, len(self.items), self.limit)
        else:
            items = Block(BlockKind.ANY, len(self.items))
        return (items, Block(BlockKind.ANY, 1)) if self.may_be_missing else (items,)

    @property
    def moves(self) -> int:
        """Other items instead of the chosen ones; or from no answer to as many as possible."""
        # From `limit` items to as many others, as far as there are others.
        moved = min(2 * self.limit, len(self.items))
        return max(moved, self.limit + 1) if self.may_be_missing else moved

    def check_answer(self, answer: object) -> tuple[int, ...] | None:
        """Return the sorted positions of the chosen items; None is "prefer not to say"."""
        if answer is None and self.may_be_missing:
            return None
        if isinstance(answer, str | bytes) or not isinstance(answer, Sequence | set | frozenset):
            raise AnswerError("an answer must be a list of positions")
        # A set, since an item that is named twice must not count twice.
        chosen = sorted({check_position(position, len(self.items)) for position in answer})
        if len(chosen) < len(answer):
            raise AnswerError("an answer names an item twice")
        if len(chosen) > self.limit:
            raise AnswerError(f"an answer has more than {self.limit} items")
        return tuple(chosen)

    def encode(self, answer: object) -> tuple[int, ...]:
        """Return a bit per item, that of skip, and the slack."""
        chosen = self.check_answer(answer)
        bits = [int(item in (chosen or ())) for item in range(len(self.items))]
        if self.may_be_missing:
            bits.append(int(chosen is None))
        if self._is_limited:
            # What is missing to the limit, so that the sum is always the public value.
            slack = 0 if chosen is None else self.limit - len(chosen)
            bits += number_bits(slack, self.limit)
        return tuple(bits)


@dataclass(frozen=True, kw_only=True)
class AnyOf(SeveralItems):
    """Any of several items."""

    kind: ClassVar[str] = "any"

    @property
    def limit(self) -> int:
        """All items."""
        return len(self.items)

    @property
    def size(self) -> str:
        """The kind and the number of items."""
        return f"any of {len(self.items)}"


@dataclass(frozen=True, kw_only=True)
class MostOf(SeveralItems):
    """At most so many of several items."""

    kind: ClassVar[str] = "most"
    most: int

    def __post_init__(self) -> None:
        super().__post_init__()
        # True is an integer in Python, and another value in published parameters.
        is_whole = isinstance(self.most, int) and not isinstance(self.most, bool)
        if not is_whole or not 1 <= self.most < len(self.items):
            raise ParameterError(
                f"most must be a whole number from 1 to {len(self.items) - 1}, fewer than the "
                "items; use kind 'any' if all of them may be chosen"
            )

    @property
    def limit(self) -> int:
        """The number given."""
        return self.most

    @property
    def size(self) -> str:
        """The kind, the limit and the number of items."""
        return f"at most {self.most} of {len(self.items)}"
