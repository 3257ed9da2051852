"""If these fail, the searching policy does not search, or does not say what it does."""

from __future__ import annotations

import ast

import pytest

from schemas.candidate import Language
from schemas.evaluation import Verdict
from tests.stages.rollout.policies.briefs import Table, brief
from tests.stages.rollout.policies.cases import CASES, model

SOURCE = model("torch.softmax(self.norm(x), -1) * y", "self.norm = nn.LayerNorm(1024)", x="2048, 1024")
PRODUCT = model("torch.mm(x, y)", x="64, 64")


def _table(episode: int = 0, turns: int = 6, source: str = SOURCE) -> Table:
    return Table("schedule", brief(source, episode=episode, turns=turns))


def test_the_first_turn_says_what_bounds_the_task_and_submits_a_module():
    table = _table()
    assert "emory" in table.last.content
    assert "4 ms" in table.last.content
    assert table.last.language is Language.CPP
    assert table.last.parent_candidate_id is None
    names = [node.name for node in ast.parse(table.text).body if isinstance(node, ast.ClassDef)]
    assert names == ["ModelNew"]


@pytest.mark.parametrize("episode", range(5))
def test_the_same_verdicts_give_the_same_actions(episode: int):
    """A run that was interrupted is replayed from its ledger."""

    def course() -> list:
        table = _table(episode)
        for verdict, speedup in [(Verdict.CORRECT, 1.1), (Verdict.WRONG, None), (Verdict.CORRECT, 1.3)]:
            if not table.ended:
                table.say(verdict, speedup)
        return table.actions

    assert course() == course()


def test_episodes_start_from_different_places():
    assert len({_table(episode).text for episode in range(4)}) >= 3


@pytest.mark.parametrize("episode", range(4))
def test_it_climbs_and_derives_each_version_from_the_best(episode: int):
    table = _table(episode)
    table.say(Verdict.CORRECT, 1.0)
    first = table.evaluations[0].candidate_id
    assert table.last.parent_candidate_id == first
    table.say(Verdict.CORRECT, 0.5)
    assert "Slower than version 1" in table.last.content
    if not table.ended:
        assert table.last.parent_candidate_id == first
        table.say(Verdict.CORRECT, 2.0)
        assert "It helped" in table.last.content


def test_a_difference_within_the_noise_is_not_called_a_gain():
    """The factories' intervals reach two per cent to either side."""
    table = _table()
    table.say(Verdict.CORRECT, 1.0)
    table.say(Verdict.CORRECT, 1.02)
    assert "intervals overlap" in table.last.content
    table.say(Verdict.CORRECT, 1.01)
    assert "No clear gain over version 2" in table.last.content


@pytest.mark.parametrize("episode", range(4))
def test_no_text_is_submitted_twice_and_the_turns_are_kept(episode: int):
    table = _table(episode)
    while not table.ended:
        table.say(Verdict.CORRECT, 1.0 + 0.1 * len(table.evaluations))
    texts = table.submissions()
    assert len(texts) == len(set(texts)) <= 6


def test_it_stops_near_the_roofline():
    table = _table()
    table.say(Verdict.CORRECT, 3.0, roofline_share=0.9)
    assert table.ended
    assert "near enough" in table.last.content


def test_it_goes_on_from_the_best_version_after_a_failure():
    table = _table()
    table.say(Verdict.CORRECT, 1.5)
    table.say(Verdict.CRASHED)
    assert not table.ended
    assert table.last.parent_candidate_id == table.evaluations[0].candidate_id


def test_a_wrong_first_version_is_answered_with_more_accurate_sums():
    table = _table()
    assert "float mean_part" in table.text or "double mean_acc" in table.text
    table.say(Verdict.WRONG)
    assert "in double" in table.last.content
    assert "double total_acc" in table.text


def test_a_failed_build_is_quoted_and_answered_with_the_plainest_version():
    table = _table()
    table.say(Verdict.BUILD_FAILED)
    assert "error: 'row' was not declared in this scope" in table.last.content
    assert "omp simd" not in table.text


def test_it_gives_up_when_even_the_plainest_version_fails():
    table = _table()
    for _ in range(6):
        if not table.ended:
            table.say(Verdict.BUILD_FAILED)
    assert table.ended
    assert len(table.submissions()) < 6


def test_the_last_turn_ends_the_episode():
    table = _table(turns=2)
    table.say(Verdict.CORRECT, 1.0)
    table.say(Verdict.CORRECT, 1.2)
    assert table.ended
    assert "turns are used up" in table.last.content


def test_a_task_without_a_loop_form_is_declined_honestly():
    table = _table(source=PRODUCT)
    assert table.ended
    assert "no kernel" in table.last.content


def test_library_work_is_named():
    table = _table(source=CASES["linear_gelu_around_the_library"])
    assert "addmm stays with PyTorch's library" in table.last.content


def test_weights_keep_their_names():
    """The judge loads the reference's `state_dict` into the candidate."""
    assert "self.norm = nn.LayerNorm(1024)" in _table().text
    assert "self.norm.weight, self.norm.bias" in _table().text
