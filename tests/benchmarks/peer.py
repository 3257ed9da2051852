"""The same candidates under KernelBench's evaluator and under ours: verdicts, speed-ups, candidates an hour.

Run it with `python -m tests.benchmarks.peer --kernelbench FOLDER`, FOLDER being a checkout of
github.com/ScalingIntelligence/KernelBench, on a machine with one CUDA device. `--skip-peer` leaves KernelBench out,
and with `--device cpu` a few C++ candidates try the script itself.

KernelBench judges one candidate after another, as its users have it do. Ours gets the same candidates, and then
batches of variants of them in the same proportions, each new to every cache. What is done once for a machine or for a
task (prepared headers, baselines, tolerances) is left out of candidates an hour and printed beside them.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schemas.candidate import Language
from tests.benchmarks.gpu_candidates import SAMPLES, Sample
from tests.benchmarks.machine import arguments, describe, save
from tests.benchmarks.peer_ours import Batch, Entry, House, Ours, open_house
from tests.benchmarks.peer_theirs import Theirs, ask

WARM_VARIANT = 100_000
FAR = 1.5
"""Speed-ups that differ by more than this factor are worth a sentence."""


def main() -> None:
    """Judge, print, keep the raw answers; what is there so far is saved after every step."""
    parser = arguments(__doc__)
    parser.add_argument("--kernelbench", type=Path, default=Path(".peer/KernelBench"))
    parser.add_argument("--gpu-arch", default="Hopper", help="as KernelBench names it")
    parser.add_argument("--peer-cuda", type=int, default=6)
    parser.add_argument("--peer-triton", type=int, default=12)
    parser.add_argument("--ours", type=int, default=64, help="candidates of each batch; 0 for none")
    parser.add_argument("--open-tasks", type=int, default=2, help="tasks judged side by side, as in a rollout")
    parser.add_argument("--skip-peer", action="store_true")
    parser.add_argument("--seconds", type=float, default=540.0, help="KernelBench gets no new candidate after this")
    options = parser.parse_args()
    asyncio.run(_compare(options))


async def _compare(options: Namespace) -> None:
    started = time.perf_counter()
    raw: dict[str, Any] = {}
    chosen = _chosen(options)
    batches = [Language.CPP] if options.device == "cpu" else [Language.CUDA, Language.TRITON]
    wanted = {sample.task for sample in chosen}
    if options.ours:
        wanted |= {sample.task for language in batches for sample in SAMPLES[language]}
    async with open_house(options.device, sorted(wanted), options.open_tasks) as house:
        _introduce(house)
        raw["hardware"] = house.hardware.model_dump(mode="json")
        raw["baselines"] = {name: pair[1].model_dump(mode="json") for name, pair in house.pairs.items()}
        await _once(house, chosen, batches)
        rates: dict[Language, float] = {}
        for language in batches if options.ours else []:
            batch = await house.judge(_variants(language, options.ours))
            rates[language] = batch.per_hour
            _print_batch(language, batch)
            raw[f"batch_{language}"] = _dump(batch)
            save(options.json, raw)
        same = await house.judge([Entry(sample, 0) for sample in chosen])
        raw["same"] = _dump(same)
    _print_rate("ours, the same candidates submitted together", len(same.results), same.seconds)
    save(options.json, raw)
    if options.skip_peer or options.device == "cpu":
        _print_verdicts(same.results, {})
        return
    theirs = dict(_ask_all(options, chosen, started))
    raw["kernelbench"] = {name: {"seconds": said.seconds, **said.answer} for name, said in theirs.items()}
    save(options.json, raw)
    _print_ratios(chosen, theirs, rates, same)
    _print_verdicts(same.results, theirs)


def _chosen(options: Namespace) -> list[Sample]:
    """The candidates that both judge, CUDA and Triton in turn, so that a part of them is a mixture too."""
    if options.device == "cpu":
        return list(SAMPLES[Language.CPP])
    cuda, triton = SAMPLES[Language.CUDA][: options.peer_cuda], SAMPLES[Language.TRITON][: options.peer_triton]
    pairs = itertools.zip_longest(triton, cuda)
    return [sample for pair in pairs for sample in pair if sample is not None]


def _variants(language: Language, count: int) -> list[Entry]:
    samples = SAMPLES[language]
    return [Entry(samples[number % len(samples)], 1 + number) for number in range(count)]


def _introduce(house: House) -> None:
    print(describe(house.hardware))
    print(f"baselines of {len(house.pairs)} tasks, once for a task: {house.baseline_seconds:.0f} s")
    for name, (_, baseline) in house.pairs.items():
        print(f"  {name}: eager {baseline.eager.seconds * 1e3:.3f} ms, nearest null {baseline.audit.nearest}")
    for name, reason in house.rejected.items():
        print(f"  {name} was rejected: {reason}")


async def _once(house: House, chosen: list[Sample], batches: list[Language]) -> None:
    """What the first candidate of a language pays for all later ones (prepared headers, first touch)."""
    languages = sorted({*(sample.language for sample in chosen), *batches})
    first = await house.judge([Entry(SAMPLES[language][0], WARM_VARIANT) for language in languages])
    print(f"the first candidate of each language, once for a machine: {first.seconds:.1f} s", flush=True)


def _ask_all(options: Namespace, chosen: list[Sample], started: float) -> Iterator[tuple[str, Theirs]]:
    for sample in chosen:
        if time.perf_counter() - started > options.seconds:
            print(f"KernelBench was not asked about {sample.name} and what follows: time is up")
            return
        said = ask(options.kernelbench, sample, options.gpu_arch)
        print(f"KernelBench, {sample.name}: {said.word}, {said.seconds:.1f} s", flush=True)
        yield sample.name, said


def _print_rate(what: str, count: int, seconds: float) -> None:
    if count:
        print(f"{what}: {count} in {seconds:.1f} s, {3600 * count / seconds:.0f} an hour", flush=True)


def _print_batch(language: Language, batch: Batch) -> None:
    _print_rate(f"ours, a batch of {language} candidates", len(batch.results), batch.seconds)
    agreed = sum(result.correct == result.entry.sample.right for result in batch.results)
    print(f"  {agreed} of {len(batch.results)} verdicts are as planted")
    for result in batch.results:
        if result.correct != result.entry.sample.right:
            print(f"  {result.entry.sample.name} {result.entry.variant}: {result.word}: {result.message[:300]}")


def _print_ratios(chosen: list[Sample], theirs: dict[str, Theirs], rates: dict[Language, float], same: Batch) -> None:
    for language in (Language.CUDA, Language.TRITON):
        asked = [s.name for s in chosen if s.language is language and s.name in theirs]
        if not asked:
            continue
        seconds = sum(theirs[name].seconds for name in asked)
        _print_rate(f"KernelBench, {language} candidates one after another", len(asked), seconds)
        if language in rates:
            print(f"ours / KernelBench, {language}: {rates[language] * seconds / (3600 * len(asked)):.1f}")
    total = sum(said.seconds for said in theirs.values())
    if total and len(theirs) == len(same.results):
        print(f"ours / KernelBench, the same candidates: {total / same.seconds:.1f}")


def _print_verdicts(ours: list[Ours], theirs: dict[str, Theirs]) -> None:
    """A row for each candidate, then a sentence for each on which the two differ or one is mistaken."""
    print("\n| candidate | task | is | KernelBench | ours | speed-up, KernelBench | speed-up, ours |")
    print("|---|---|---|---|---|---|---|")
    for result in ours:
        sample, said = result.entry.sample, theirs.get(result.entry.sample.name)
        cells = [sample.name, sample.task, "right" if sample.right else "wrong", said.word if said else "not asked"]
        cells += [result.word, _figure(said.speedup if said else None), _figure(result.speedup)]
        print(f"| {' | '.join(cells)} |")
    print()
    for result in ours:
        sentence = _sentence(result, theirs.get(result.entry.sample.name))
        if sentence:
            print(f"- {sentence}")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _sentence(result: Ours, said: Theirs | None) -> str:
    sample = result.entry.sample
    planted = f"Planted: {sample.planted}." if sample.planted else "Nothing is planted in it."
    if said is None:
        mistaken = result.correct != sample.right
        return f"{sample.name}: ours says {result.word} ({result.message}). {planted}" if mistaken else ""
    if said.correct != result.correct:
        return f"{sample.name}: KernelBench says {said.word}, ours {result.word} ({result.message}). {planted}"
    if said.speedup and result.speedup and not 1 / FAR < said.speedup / result.speedup < FAR:
        return (
            f"{sample.name}: both say correct; the speed-up is {said.speedup:.2f} to KernelBench and "
            f"{result.speedup:.2f} to ours. {planted}"
        )
    return f"{sample.name}: both say {result.word}, and both are mistaken." if result.correct != sample.right else ""


def _dump(batch: Batch) -> dict[str, Any]:
    results = [
        {
            "name": result.entry.sample.name,
            "variant": result.entry.variant,
            "fault": result.fault,
            "evaluation": None if result.evaluation is None else result.evaluation.model_dump(mode="json"),
        }
        for result in batch.results
    ]
    return {"seconds": batch.seconds, "results": results}


if __name__ == "__main__":
    main()
