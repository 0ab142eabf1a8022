"""The audit of joint noise: not refuted as it is, and refuted where an error is planted."""

import pytest

import faircount as fc
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.questions import AnyOf, MostOf, Number, OneOf, Questionnaire, YesNo
from faircount.mechanisms.joint_noise.balls import UniformIntegers
from faircount.mechanisms.joint_noise.mechanism import GroupNoise, JointNoise, split_epsilon

YES_NO = Questionnaire(tuple(YesNo(text=f"q{number}") for number in range(4)))
MIXED = Questionnaire(
    (
        OneOf(text="a", items=("1", "2", "3")),
        AnyOf(text="b", items=("1", "2")),
        MostOf(text="c", items=("1", "2", "3"), most=1),
        Number(text="d", low=0, high=5),
    )
)


def make_noise(form: Questionnaire) -> JointNoise:
    groups = split_epsilon(1.0, [range(len(form))])
    return JointNoise(questionnaire=form, groups=groups, epsilon=1.0)


@pytest.mark.parametrize("form", [YES_NO, MIXED], ids=["yes/no", "mixed"])
def test_joint_noise_is_not_refuted(form: Questionnaire) -> None:
    report = fc.audit(make_noise(form), runs=3000, entropy=SeededStream(1))
    assert not report.refuted
    assert report.mechanism == "joint"


def test_planted_a_radius_for_each_question_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: GroupNoise, entropy: Entropy) -> list[list[int]]:
        source = UniformIntegers(entropy)
        table = GroupNoise(self.group, self.balls[:1], self.scaled).table
        return [ball.draw(table.draw(entropy), table.largest, source) for ball in self.balls]

    monkeypatch.setattr(GroupNoise, "draw", draw)
    report = fc.audit(make_noise(YES_NO), runs=3000, entropy=SeededStream(1))
    assert report.refuted
    assert report.lower_bound > 1.2


def test_planted_noise_for_half_of_the_questions_is_refuted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def draw(self: GroupNoise, entropy: Entropy) -> list[list[int]]:
        points = original(self, entropy)
        return [*points[:2], [0], [0]]

    original = GroupNoise.draw
    monkeypatch.setattr(GroupNoise, "draw", draw)
    assert fc.audit(make_noise(YES_NO), runs=2000, entropy=SeededStream(1)).refuted


def test_planted_a_radius_of_its_own_for_skip_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: GroupNoise, entropy: Entropy) -> list[list[int]]:
        source = UniformIntegers(entropy)
        points = []
        for ball in self.balls:
            table = GroupNoise(self.group, (ball,), self.scaled).table
            points.append(ball.draw(table.draw(entropy), table.largest, source))
        return points

    monkeypatch.setattr(GroupNoise, "draw", draw)
    form = Questionnaire((Number(text="a", low=0, high=1, skip=True),))
    assert fc.audit(make_noise(form), runs=4000, entropy=SeededStream(1)).refuted
