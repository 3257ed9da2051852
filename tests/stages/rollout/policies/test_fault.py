"""If these fail, the critic is shown failures that are none, or repairs that are magic."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from schemas.evaluation import Verdict
from stages.rollout.policies.codegen.choices import Choices, Reuse
from stages.rollout.policies.codegen.cpp.kernel import Function
from stages.rollout.policies.codegen.cpp.module import FLAGS, Segment
from stages.rollout.policies.codegen.generate import Generated, Machine, generate
from stages.rollout.policies.fault import FaultEpisode
from stages.rollout.policies.mutations import CATALOGUE, Kind, Mutation
from tests.stages.rollout.policies import emulated, plain
from tests.stages.rollout.policies.briefs import Table, brief
from tests.stages.rollout.policies.cases import CASES, model

CPU = Machine("cpp", 2)

HEADERS = Path(__file__).parents[4] / "sandbox" / "extension" / "headers"
LAYER_NORM = model("torch.softmax(self.norm(x * y) + y, -1) * 0.5", "self.norm = nn.LayerNorm(2048)", x="64, 2048")
COLUMNS = model("(F.silu(x) - y / 2).mean(1)", x="8, 500, 70")
TILES = CASES["transposed_pointwise"]
SOURCES = {"norm": LAYER_NORM, "columns": COLUMNS, "tiles": TILES}
ROWS = model("torch.softmax(self.norm(x * y) + y, -1) * 0.5", "self.norm = nn.LayerNorm(96)", x="9, 96")
ROW_SUMS = model("(x * y - y).mean(1) * 2", x="9, 96")
ON_A_GPU = {
    "warps": (ROWS, Choices(block=64)),
    "blocks": (ROWS, Choices(team=64, reuse=Reuse.RECOMPUTE)),
    "sums": (ROW_SUMS, Choices(block=32)),
}
RACY = {"shared_scratch", "missing_barrier"}
"""Wrong only if two threads meet."""

BY_NAME = {mutation.name: mutation for mutation in CATALOGUE}
OF_KIND = {kind: [mutation.name for mutation in CATALOGUE if mutation.kind is kind] for kind in Kind}


@pytest.fixture(scope="module")
def sound() -> dict[str, Generated]:
    return {name: generate(source, name, Choices(), CPU) for name, source in SOURCES.items()}


def _named(samples: dict[str, tuple[str, Choices]]):
    return [(name, (source, name, choices)) for name, (source, choices) in samples.items()]


@pytest.fixture(scope="module")
def sound_cuda() -> dict[str, Generated]:
    return {name: generate(*task, Machine("cuda", 4)) for name, task in _named(ON_A_GPU)}


def _edit(mutation: Mutation, text: str, seed: int = 0):
    return mutation.edit(text, random.Random(seed))


def _cpp(text: str) -> str:
    return text.split("source = r'''")[1].split("'''")[0]


@pytest.mark.parametrize("name", BY_NAME)
def test_a_mutation_changes_the_text_where_it_says(sound, sound_cuda, name: str):
    edits = [(one.text, _edit(BY_NAME[name], one.text)) for one in (*sound.values(), *sound_cuda.values())]
    fitting = [(text, edit) for text, edit in edits if edit is not None]
    assert fitting, "fits none of the samples"
    for text, edit in fitting:
        assert edit.text != text
        assert edit.before in text
        assert edit.after in edit.text
        assert edit == _edit(BY_NAME[name], text), "not deterministic"


def test_the_catalogue_is_large_enough(sound_cuda):
    assert len(CATALOGUE) == len(BY_NAME) >= 25
    assert min(len(names) for names in OF_KIND.values()) >= 4
    fitting = {name for name in BY_NAME for one in sound_cuda.values() if _edit(BY_NAME[name], one.text) is not None}
    assert len(fitting) >= 20


INCLUDES = (f"-I{HEADERS}", f"-I{sysconfig.get_path('include')}")
COMMAND = ("g++", "-std=c++20", "-w", *FLAGS[1:])


@pytest.fixture(scope="module")
def compiles(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bool]:
    """Whether Python reads a candidate and its C++ compiles against the candidates' headers, bindings included."""
    folder: Path = tmp_path_factory.mktemp("build")
    (folder / "torch").mkdir()
    header = folder / "torch" / "extension.h"
    header.write_text((HEADERS / "torch" / "extension.h").read_text())
    # Read once: the headers are most of what a compiler has to do here.
    subprocess.run([*COMMAND, *INCLUDES, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)

    def check(text: str) -> bool:
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return False
        call = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "load_inline")
        functions = next(ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg == "functions")
        source = folder / "candidate.cpp"
        source.write_text(_cpp(text) + "".join(f"auto* bound_{name} = &{name};\n" for name in functions))
        command = [*COMMAND, f"-I{folder}", *INCLUDES, "-fsyntax-only", str(source)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    return check


def test_a_sound_candidate_compiles(sound, compiles):
    assert compiles(sound["columns"].text)


@pytest.mark.parametrize("name", OF_KIND[Kind.BUILD])
def test_a_build_bug_does_not_compile(sound, compiles, name: str):
    edits = [_edit(BY_NAME[name], one.text) for one in (sound["columns"], sound["norm"])]
    edit = next(edit for edit in edits if edit is not None)
    assert not compiles(edit.text)


@pytest.fixture(scope="module")
def mutants(sound) -> dict[str, tuple[str, Generated]]:
    found = {}
    for name in OF_KIND[Kind.WRONG]:
        for source, one in sound.items():
            edit = _edit(BY_NAME[name], one.text, seed=1)
            if edit is not None and name not in RACY:
                found[f"{name}_{source}"] = source, one._replace(text=edit.text, source=_cpp(edit.text))
    return found


def test_wrong_bugs_compile_and_nearly_all_answer_wrongly(mutants, tmp_path: Path):
    """Not all of them: a bug may sit where it does no harm, and then the verdict is the judge's, as always."""
    library = plain.build(tmp_path, {key: generated for key, (_, generated) in mutants.items()})
    caught = {key for key, (source, generated) in mutants.items() if _differs(key, source, generated, library)}
    assert len(caught) >= 0.85 * len(mutants), sorted(mutants.keys() - caught)


def test_wrong_bugs_in_cuda_compile_and_nearly_all_answer_wrongly(sound_cuda, tmp_path: Path):
    mutants = {
        f"{name}_{sample}": one._replace(text=edit.text, source=_cpp(edit.text), segments=_launched(one, edit.text))
        for name in OF_KIND[Kind.WRONG]
        for sample, one in sound_cuda.items()
        if name not in RACY and (edit := _edit(BY_NAME[name], one.text, seed=1)) is not None
    }
    library = emulated.build(tmp_path, mutants)
    sources = {key: ON_A_GPU[key.rpartition("_")[2]][0] for key in mutants}
    caught = {key for key, one in mutants.items() if _differs(key, sources[key], one, library)}
    assert len(caught) >= 0.85 * len(mutants), sorted(mutants.keys() - caught)


def _launched(generated: Generated, text: str) -> tuple[Segment, ...]:
    """The segments with the launches as they stand in an edited text."""

    def changed(function: Function) -> Function:
        launch = re.search(rf"{function.name}(<<<.*?>>>)", text)
        return function._replace(launch=launch.group(1))

    return tuple(
        segment._replace(kernels=tuple(changed(kernel) for kernel in segment.kernels)) for segment in generated.segments
    )


def _differs(key: str, source: str, generated: Generated, library) -> bool:
    space: dict[str, object] = {}
    exec(SOURCES.get(source, source), space)
    torch.manual_seed(0)
    module = space["Model"]()
    new = plain.model_class(key, generated, library)()
    new.load_state_dict(module.state_dict())
    with torch.no_grad():
        for x, y in (space["get_inputs"](), [one * 10 + 200 for one in space["get_inputs"]()]):
            want, got = module(x, y), new(x, y)
            if not torch.allclose(got, want, rtol=1e-3, atol=float(want.abs().max()) * 1e-4):
                return True
    return False


def _episode(episode: int, source: str = LAYER_NORM) -> Table:
    return Table("fault", brief(source, episode=episode))


def _planted(table: Table) -> tuple[Mutation, ...]:
    assert isinstance(table.episode, FaultEpisode)
    return table.episode.planted


def test_first_submissions_fail_in_the_promised_shares():
    first = [_planted(_episode(episode))[0] for episode in range(80)]
    kinds = [bug.kind for bug in first]
    assert kinds.count(Kind.BUILD) >= len(kinds) / 3
    assert kinds.count(Kind.WRONG) > kinds.count(Kind.CRASH) > 0
    assert len({bug.name for bug in first}) >= 18


VERDICTS = {Kind.BUILD: Verdict.BUILD_FAILED, Kind.WRONG: Verdict.WRONG, Kind.CRASH: Verdict.CRASHED}


@pytest.mark.parametrize("episode", range(12))
def test_it_repairs_what_it_planted_within_the_turns(episode: int):
    table = _episode(episode)
    while (bugs := _planted(table)) and not table.ended:
        kinds = [bug.kind for bug in bugs]
        table.say(VERDICTS[Kind.BUILD if Kind.BUILD in kinds else kinds[0]])
    assert not table.ended
    text = table.text
    assert not any((edit := _edit(bug, text)) and edit.text == text for bug in CATALOGUE)
    table.say(Verdict.CORRECT, 1.2)
    while not table.ended:
        table.say(Verdict.CORRECT, 1.3)
    assert len(table.submissions()) <= 6


@pytest.mark.parametrize("episode", range(12))
def test_the_prose_knows_nothing_before_the_verdict(episode: int):
    """The opening is what the searching policy would say; it names no bug."""
    table = _episode(episode)
    for mutation in CATALOGUE:
        assert mutation.found not in table.last.content


@pytest.mark.parametrize("episode", range(12))
def test_a_repair_argues_from_the_verdict(episode: int):
    table = _episode(episode)
    kind = _planted(table)[0].kind
    table.say(VERDICTS[kind])
    opening = {Kind.BUILD: "The build failed", Kind.WRONG: "Wrong", Kind.CRASH: "Crashed"}[kind]
    assert table.last.content.startswith(opening)
    assert table.last.parent_candidate_id == table.evaluations[0].candidate_id


def test_a_bug_that_did_no_harm_is_mended_all_the_same():
    table = next(one for one in map(_episode, range(40)) if len(_planted(one)) == 1)
    table.say(Verdict.CORRECT, 1.2)
    assert "should not" in table.last.content
    assert not _planted(table)


def test_the_same_verdicts_give_the_same_actions():
    def course() -> list:
        table = _episode(3)
        for verdict in (Verdict.WRONG, Verdict.WRONG, Verdict.CORRECT):
            if not table.ended:
                table.say(verdict, 1.1 if verdict is Verdict.CORRECT else None)
        return table.actions

    assert course() == course()


def test_a_task_without_a_kernel_is_declined():
    assert _episode(0, model("torch.mm(x, y)", x="64, 64")).ended
