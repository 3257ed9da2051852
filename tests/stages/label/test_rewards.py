"""What a verdict is worth: a wrong figure here teaches every policy the wrong thing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.evaluation import Verdict
from schemas.parameters import LabelParameters
from schemas.timing import Ratio
from stages.label.rewards import RULES, faster, milestone, speed_label
from tests.factories import candidate, evaluation, task

TRIED = candidate(task())


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict is not Verdict.CORRECT])
def test_whatever_is_not_correct_costs_one(verdict):
    speedup = 90.0 if verdict is Verdict.SUSPECT else None
    assert milestone(evaluation(TRIED, verdict, speedup=speedup, compiled=speedup), min_effect=0.05) == -1.0


@pytest.mark.parametrize(
    ("speedup", "compiled", "reward"),
    [
        (None, None, 1.0),  # not profiled
        (0.5, 0.4, 1.0),
        (1.5, 0.9, 2.0),
        (1.5, None, 2.0),  # torch.compile has no time: 3 is out of reach
        (1.5, 1.3, 3.0),
        (0.9, 1.5, 1.0),  # faster than a slow compiled version only
        (Ratio(value=1.5, low=1.04, high=2.0), 1.5, 1.0),  # the point clears it, the interval does not
        (1.5, Ratio(value=1.5, low=1.04, high=2.0), 2.0),
        (Ratio(value=1.06, low=1.053, high=1.07), None, 2.0),  # 1 / 0.95 is 1.0526
        (Ratio(value=1.06, low=1.052, high=1.07), None, 1.0),
    ],
)
def test_a_correct_candidate_earns_its_milestone(speedup, compiled, reward):
    assert milestone(evaluation(TRIED, speedup=speedup, compiled=compiled), min_effect=0.05) == reward


def test_a_kernel_bound_by_launches_earns_nothing_for_speed():
    judged = evaluation(TRIED, speedup=5.0, compiled=5.0, launch_bound=True)
    assert milestone(judged, min_effect=0.05) == 1.0
    assert speed_label(judged) is None


def test_a_suspect_has_no_speed_that_could_be_taught():
    assert speed_label(evaluation(TRIED, Verdict.SUSPECT, speedup=90.0)) is None


@given(st.floats(0.01, 100), st.floats(0, 0.5), st.floats(0, 0.95))
def test_faster_means_that_the_pessimistic_time_saves_enough(value, width, min_effect):
    speedup = Ratio(value=value, low=value * (1 - width), high=value * (1 + width))
    saved = 1 - 1 / speedup.low
    if abs(saved - min_effect) > 1e-9:
        assert faster(speedup, min_effect) == (saved > min_effect)


def test_the_stored_parameters_let_a_label_be_redone():
    rule = RULES["milestone"].bind(LabelParameters(min_effect=0.1))
    assert json.loads(rule.parameters_json(0.9)) == {"gamma": 0.9, "min_effect": 0.1}
    assert rule.reward(evaluation(TRIED, speedup=Ratio(value=1.09, low=1.08, high=1.1))) == 1.0
