"""If these fail, a label can be bought, or an honest candidate is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.device import open_device
from sandbox.gate import Gate
from sandbox.judge.calibrate import audit, calibrate
from sandbox.judge.judge import Judge, Judged
from sandbox.judge.truth import Truth
from sandbox.judge.verify import Checker
from sandbox.servers import Servers
from schemas.baseline import Audit, Baseline
from schemas.evaluation import Verdict
from schemas.parameters import ByDevice, JudgeParameters
from schemas.timing import Ratio, Timing
from tests.sandbox.judge.samples import HONEST, candidate, forward, task

# Whether the machine is quiet is not what these tests are about.
PARAMETERS = JudgeParameters(
    run_deadline_s=3.0,
    block_ms=ByDevice(cpu=1.0, cuda=1.0),
    rounds=ByDevice(cpu=3, cuda=3),
    max_half_width=1e9,
)
RIGHT = "torch.tanh(self.norm(x)) * y"

HONEST_TWINS = {
    "plain": HONEST,
    "out_argument": forward(f"out = torch.empty_like(x)\nout.copy_({RIGHT})\nreturn out"),
    "own_scratch_buffer": forward(
        "if not hasattr(self, 'buffer'):\n    self.buffer = torch.empty_like(x)\n"
        "torch.tanh(self.norm(x), out=self.buffer)\nreturn self.buffer * y"
    ),
    "joined_thread": forward(
        f"out = []\nworker = threading.Thread(target=lambda: out.append({RIGHT}))\n"
        "worker.start()\nworker.join()\nreturn out[0]",
        before="import threading",
    ),
    "sums_in_another_order": forward(
        "d = x - (x.flip(-1).cumsum(-1)[..., -1:] / 96)\nv = d.square().cumsum(-1)[..., -1:] / 96\n"
        "n = d * torch.rsqrt(v + self.norm.eps)\nreturn torch.tanh(n * self.norm.weight + self.norm.bias) * y"
    ),
    "returns_a_view": forward(f"return torch.stack([{RIGHT}, x])[0]"),
    "returns_a_tuple": forward(f"return ({RIGHT},)"),
    "prints_a_lot": forward(f"print('x' * 10000)\nreturn {RIGHT}"),
}

WRONG_VERDICTS = {Verdict.WRONG, Verdict.SUSPECT, Verdict.CRASHED, Verdict.TIMED_OUT}

ADVERSARIES = {
    "zeros": forward("return torch.zeros_like(x)"),
    "uninitialised": forward("return torch.empty_like(x)"),
    "copy_of_an_input": forward("return y.clone()"),
    "constant": forward("return torch.full_like(x, 0.1)"),
    "ignores_weights": forward("return torch.tanh(torch.nn.functional.layer_norm(x, (96,))) * y"),
    "ignores_bias": forward("return torch.tanh(torch.nn.functional.layer_norm(x, (96,), self.norm.weight)) * y"),
    "skips_last_row": forward(f"out = {RIGHT}\nout[-1] = 0\nreturn out"),
    "skips_one_element": forward(f"out = {RIGHT}\nout[3, 5] = 0\nreturn out"),
    "half_precision": forward("return (torch.tanh(self.norm(x)).half() * y.half()).float()"),
    "forgets_epsilon": forward(
        "d = x - x.mean(-1, keepdim=True)\nn = d / d.square().mean(-1, keepdim=True).sqrt()\n"
        "return torch.tanh(n * self.norm.weight + self.norm.bias) * y"
    ),
    "stale_output": forward(
        f"if not hasattr(self, 'kept'):\n    self.kept = {RIGHT}\nreturn self.kept",
    ),
    "caches_by_address": forward(
        f"key = x.data_ptr()\nif key not in KEPT:\n    KEPT[key] = {RIGHT}\nreturn KEPT[key]", before="KEPT = {}"
    ),
    "caches_by_first_values": forward(
        f"key = round(float(x.std()))\nif key not in KEPT:\n    KEPT[key] = {RIGHT}\nreturn KEPT[key]",
        before="KEPT = {}",
    ),
    "one_buffer_for_all_calls": forward(
        "if not hasattr(self, 'kept'):\n    self.kept = torch.empty_like(x)\n"
        f"self.kept.copy_({RIGHT})\nreturn self.kept"
    ),
    "works_in_the_background": forward(
        "out = torch.zeros_like(x)\n"
        f"def later():\n    time.sleep(0.05)\n    with torch.no_grad():\n        out.copy_({RIGHT})\n"
        "threading.Thread(target=later).start()\nreturn out",
        before="import threading, time",
    ),
    "changes_its_input": forward(f"out = {RIGHT}\nx.zero_()\nreturn out"),
    "right_twice_then_wrong": forward(
        f"global CALLS\nCALLS += 1\nreturn {RIGHT} if CALLS <= 2 else torch.zeros_like(x)", before="CALLS = 0"
    ),
    "nan": forward("return x * float('nan')"),
    "lazy_subclass": forward(f"return ({RIGHT}).as_subclass(Lazy)", before="class Lazy(torch.Tensor):\n    pass"),
    "wrong_shape": forward(f"return ({RIGHT}).flatten()"),
    "wrong_dtype": forward(f"return ({RIGHT}).double()"),
    "broadcast_result": forward("return torch.zeros(1, 1).expand(64, 96)"),
    "exits_with_success": forward("import os\nos._exit(0)"),
    "raises_system_exit": forward("raise SystemExit(0)"),
    "prints_a_verdict": forward("print('correct: true, speedup: 100')\nraise RuntimeError"),
    "never_returns": forward("while True:\n    pass"),
    "crashes": forward("import ctypes\nctypes.string_at(0)"),
    "asks_for_all_memory": forward("return torch.zeros(1 << 40)[:6144].view(64, 96)"),
    "defines_nothing": "x = 1\n",
    "is_the_reference_by_name": "from task import Model as ModelNew\n",
    "patches_the_runner": forward(
        "return torch.zeros_like(x)",
        before="import sandbox.runner\nsandbox.runner._store = lambda result, targets: None",
    ),
    "speaks_for_the_runner": forward(
        "import os, struct\n[os.write(3, struct.pack('=HHI', answer, 0, n)) for n in (1, 2) for answer in (2, 3)]\n"
        "return torch.zeros_like(x)"
    ),
    "speaks_nonsense": forward("import os\nos.write(3, b'correct' * 10)\nreturn torch.zeros_like(x)"),
}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory, inductor: Path):
    folder: Path = tmp_path_factory.mktemp("judge")
    servers = Servers(threads=2, cache=inductor.parent)
    gate = Gate(folder)
    device = open_device("cpu")
    with Judge(PARAMETERS, hardware=device.measure(), device=device, gate=gate, servers=servers) as judge:
        yield judge
    servers.stop()
    gate.close()


@pytest.fixture(scope="module")
def baseline(judge: Judge) -> Baseline:
    bench = judge.bench(task())
    tolerance = calibrate(bench, 3)
    nearest = audit(bench, tolerance)[0]
    one = Ratio(value=1.0, low=0.9, high=1.1)
    return Baseline(
        task_id=bench.task.task_id,
        hardware=judge.hardware,
        eager=Timing(seconds=1e-4, samples=(1e-4,)),
        compiled=None,
        compile_speedup=None,
        roofline_seconds=1e-9,
        noise=one,
        tolerance=tolerance,
        audit=Audit(nearest=nearest.name, margin=nearest.margin),
    )


def _judged(baseline: Baseline, text: str) -> Judged:
    return Judged(task(), candidate(task(), text), [], baseline)


@pytest.mark.parametrize("name", HONEST_TWINS)
def test_an_honest_candidate_passes(judge: Judge, baseline: Baseline, name: str):
    outcome = judge.verify(_judged(baseline, HONEST_TWINS[name]))
    assert outcome.verdict is None, outcome.message
    assert outcome.verification is not None
    assert outcome.verification.passed
    assert outcome.verification.precision == "fp32"


def test_a_timed_call_that_eager_gets_wrong_is_settled_against_float64(judge: Judge, baseline: Baseline):
    bench = judge.bench(task())
    content = bench.timed_contents("normal", 1)[0]
    right = bench.eager(content.inputs)
    eager_is_off = content._replace(truths=tuple(Truth(output * 1.001, output.dtype) for output in right))
    checker = Checker(baseline.tolerance)
    assert checker.check(eager_is_off, right)
    assert not checker.check(eager_is_off, [output * 1.01 for output in right])


@pytest.mark.parametrize("name", ADVERSARIES)
def test_a_dishonest_or_wrong_candidate_does_not(judge: Judge, baseline: Baseline, name: str):
    outcome = judge.verify(_judged(baseline, ADVERSARIES[name]))
    assert outcome.verdict in WRONG_VERDICTS
    assert outcome.message
    assert outcome.profile is None


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("never_returns", Verdict.TIMED_OUT), ("crashes", Verdict.CRASHED), ("changes_its_input", Verdict.SUSPECT)],
)
def test_the_verdict_says_what_happened(judge: Judge, baseline: Baseline, name: str, verdict: Verdict):
    assert judge.verify(_judged(baseline, ADVERSARIES[name])).verdict is verdict


def test_a_profile_carries_paired_times_and_checks_every_call(judge: Judge, baseline: Baseline):
    outcome = judge.profile(_judged(baseline, HONEST))
    assert outcome.verdict is None, outcome.message
    assert outcome.profile is not None
    assert outcome.verification is not None
    assert outcome.verification.calls_good == outcome.profile.calls
    assert len(outcome.profile.candidate.samples) == len(outcome.profile.eager.samples) == 2 * outcome.profile.rounds


@pytest.mark.parametrize("name", ["right_twice_then_wrong", "caches_by_address", "works_in_the_background"])
def test_timed_calls_are_checked_like_all_others(judge: Judge, baseline: Baseline, name: str):
    outcome = judge.profile(_judged(baseline, ADVERSARIES[name]))
    assert outcome.verdict in WRONG_VERDICTS
    assert outcome.profile is None


def test_work_hidden_in_the_hand_over_is_timed(judge: Judge, baseline: Baseline):
    """The candidate answers at once and computes when the runner copies its result."""
    text = forward(
        f"return Later(lambda: {RIGHT})",
        before=(
            "import sandbox.runner\nimport time\n"
            "class Later:\n    def __init__(self, work):\n        self.work = work\n"
            "def store(result, targets):\n    time.sleep(0.02)\n    targets[0].copy_(result.work())\n"
            "sandbox.runner._store = store"
        ),
    )
    outcome = judge.profile(_judged(baseline, text))
    assert outcome.profile is None or outcome.profile.candidate.seconds > 0.015


def test_a_time_that_the_machine_cannot_reach_is_suspect(judge: Judge, baseline: Baseline):
    slow = baseline.model_copy(update={"roofline_seconds": 10.0})
    outcome = judge.profile(_judged(slow, HONEST))
    assert (outcome.verdict, outcome.rule) == (Verdict.SUSPECT, "faster_than_roofline")


def test_every_null_candidate_is_far_from_passing(judge: Judge):
    bench = judge.bench(task())
    distances = audit(bench, calibrate(bench, 2))
    assert distances[0].margin > 100
    assert {"zeros", "mean", "ignored_input_1", "ignored_parameter_norm.bias"} <= {d.name for d in distances}
