"""How fast is it? Times a candidate against both baselines under one protocol, checking every timed call."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.errors import SandboxFault
from sandbox.gate import Gate
from sandbox.judge.bench import Bench
from sandbox.judge.race import Race, Side
from sandbox.judge.runner_host import RunnerHost
from sandbox.judge.timing import half_width, timing
from sandbox.judge.verify import Checker, Suspicion
from schemas.baseline import Baseline
from schemas.evaluation import Profile
from schemas.hardware import Hardware
from schemas.parameters import JudgeParameters
from schemas.timing import Ratio

MIN_ROUNDS = 3
CLEAR = 1.2
"""A ratio whose interval lies beyond this factor on either side of one needs no sharper figure."""
EXTRA_ROUNDS = 12
LAUNCH_BOUND_SECONDS = 10e-6
"""Below this a call measures Python's dispatch, and gets no speed label."""
ROOFLINE_SLACK = 0.8
"""Measured peak rates are good to about this; a time further below the roofline's cannot be real."""


class NoiseFault(SandboxFault):
    """The machine was too unsteady for a label."""


def profile(bench: Bench, host: RunnerHost, baseline: Baseline, checker: Checker, gate: Gate) -> Profile | None:
    """The candidate's times and speed-ups; null where a timed call was wrong (the checker then says so).

    Raises `RunnerEnded`, `Suspicion`, and `NoiseFault` where the interval stays too wide for any label.
    """
    sides = [Side("candidate", host, checker), Side("eager", bench.baseline("eager"))]
    if baseline.compiled is not None:
        sides.append(Side("compiled", bench.baseline("compiled")))
    race = Race(bench, gate, sides)
    race.warm()
    run_rounds(race, [(side.name, "candidate") for side in sides[1:]], bench.parameters)
    if not race.all_good():
        return None
    race.check_finished()
    return _profile(race, baseline)


def run_rounds(race: Race, pairs: Sequence[tuple[str, str]], parameters: JudgeParameters) -> None:
    """Rounds until the first ratio is known well, or more of them could not change what a label says.

    `pairs` are numerators with denominators, eager's first. At most the set number of rounds, and some more on an
    unsteady machine. Ends early on a wrong call. Raises `NoiseFault`.
    """
    while race.all_good():
        if race.rounds >= MIN_ROUNDS:
            ratios = [race.ratio(*pair) for pair in pairs]
            if _enough(ratios, race, parameters):
                return
            if race.rounds >= parameters.rounds.on(race.kind) + EXTRA_ROUNDS:
                (numerator, denominator), ratio = pairs[0], ratios[0]
                raise NoiseFault(
                    f"the machine is too unsteady: {numerator} over {denominator} is {ratio.value:.2f} "
                    f"[{ratio.low:.2f}, {ratio.high:.2f}] after {race.rounds} rounds; run again when it is quiet"
                )
        race.round()


def _enough(ratios: Sequence[Ratio], race: Race, parameters: JudgeParameters) -> bool:
    """Whether the first ratio is known well, or so far from one that more rounds could not matter.

    Before the set number of rounds they must not matter for the other baseline either.
    """
    first, late = ratios[0], race.rounds >= parameters.rounds.on(race.kind)
    target = parameters.max_half_width if late else parameters.target_half_width.on(race.kind)
    if half_width(first) < target or first.high < 1 / CLEAR:
        return True
    if late:
        return _clear(first)
    return all(map(_clear, ratios)) and half_width(first) < parameters.max_half_width


def _clear(ratio: Ratio) -> bool:
    return ratio.low > CLEAR or ratio.high < 1 / CLEAR


def _profile(race: Race, baseline: Baseline) -> Profile:
    times = {name: timing(race.seconds(name)) for name in race.sides}
    seconds = times["candidate"].seconds
    return Profile(
        candidate=times["candidate"],
        eager=times["eager"],
        compiled=times.get("compiled"),
        speedup_eager=race.ratio("eager", "candidate"),
        speedup_compiled=race.ratio("compiled", "candidate") if "compiled" in times else None,
        roofline_share=baseline.roofline_seconds / seconds,
        rounds=race.rounds,
        calls=race.sides["candidate"].total,
        cache="cold",
        launch_bound=seconds < LAUNCH_BOUND_SECONDS,
        before=None,
        after=None,
    )


def check_roofline(profile: Profile, hardware: Hardware) -> None:
    """A time that the machine's measured rates forbid is not fast but wrong. Raises `Suspicion`."""
    if profile.roofline_share > 1 / ROOFLINE_SLACK:
        raise Suspicion(
            "faster_than_roofline",
            f"{profile.candidate.seconds * 1e6:.1f} us a call is {profile.roofline_share:.2f} times faster than "
            f"{hardware.name} allows at its measured peak rates",
        )
