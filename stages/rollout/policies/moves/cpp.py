"""Moves on a CPU: vectors, elementary functions, pages, stores, strips."""

from __future__ import annotations

from stages.rollout.policies.codegen.choices import Pages, Reuse, Stores, Sums, Transcendentals, Vector
from stages.rollout.policies.codegen.cpp.loops import STREAM_BYTES
from stages.rollout.policies.codegen.cpp.module import HUGE_BYTES
from stages.rollout.policies.moves.base import FUSING, Move, View, keep_reason, spare_accuracy, sums_reason
from stages.rollout.policies.workshop import Draft
from stages.rollout.units import bytes_text


def _vector_reason(_: View, __: Draft) -> str:
    return "The inner loops are not marked for vectorisation, so sums run one element at a time: add `omp simd`."


def _elementary_reason(view: View, _: Draft) -> str:
    names = ", ".join(view.elementary)
    return (
        f"Each element calls the C library ({names}), which keeps the loop scalar. Replace the calls by branch-free "
        "polynomials that the compiler vectorises; they stay within a few ulp."
    )


def _huge_reason(view: View, _: Draft) -> str:
    pages = view.made_bytes // 4096
    return (
        f"Results of {bytes_text(view.made_bytes)} are fresh memory: up to {pages} page faults a call. Ask for 2 MiB "
        "pages before the first touch."
    )


def _stream_reason(view: View, _: Draft) -> str:
    return (
        f"Every line of the {bytes_text(view.made_bytes)} of results is read before it is overwritten, and pushes "
        "inputs out of the cache. Write whole blocks past the cache with non-temporal stores."
    )


def _strip_reason(view: View, after: Draft) -> str:
    rows = sum(one.size * 4 for kernel in view.draft.generated.kernels for one in kernel.scratch)
    held = f" ({rows / 1024:.0f} KiB of scratch)" if rows else ""
    direction = "shorter" if after.choices.strip < view.choices.strip else "longer"
    return (
        f"The strips are {view.choices.strip} lanes wide{held}. Try {direction} ones, {after.choices.strip}: the width "
        "trades cache for loop overhead, and only the clock can tell which weighs more here."
    )


def _chains_reason(view: View, after: Draft) -> str:
    return (
        f"A vectorised sum waits for its own last addition. Use {after.choices.chains} independent accumulators "
        f"instead of {view.choices.chains}."
    )


def _one_thread_reason(view: View, _: Draft) -> str:
    profile = view.evaluation.profile
    took = f"At {profile.candidate.seconds * 1e6:.0f} us a call, waking" if profile else "Waking"
    return f"{took} threads may cost more than they save: run on one."


def _has_loops(view: View) -> bool:
    return any(kernel.lane is not None and kernel.scratch for kernel in view.draft.generated.kernels)


def _short(view: View) -> bool:
    profile = view.evaluation.profile
    return profile is not None and profile.candidate.seconds < 150e-6


def _large(view: View, size: int) -> bool:
    return any(tensor.nbytes >= size for tensor in view.draft.made)


def _strip_move(strip: int) -> Move:
    return Move(
        f"strip_{strip}",
        lambda choices: choices._replace(strip=strip),
        lambda view: 3.0 if _has_loops(view) and view.choices.strip != strip else 1.0,
        _strip_reason,
    )


def _chains_move(chains: int) -> Move:
    return Move(
        f"chains_{chains}",
        lambda choices: choices._replace(chains=chains),
        lambda view: 2.0 if view.choices.chains < chains else 1.0,
        _chains_reason,
    )


MOVES: tuple[Move, ...] = (
    *FUSING,
    Move(
        "vectorise",
        lambda choices: choices._replace(vector=Vector.SIMD),
        lambda view: 12.0 if view.choices.vector is Vector.SCALAR else 0.0,
        _vector_reason,
    ),
    Move(
        "polynomials",
        lambda choices: choices._replace(transcendentals=Transcendentals.POLYNOMIAL, vector=Vector.SIMD),
        lambda view: 13.0 if view.choices.transcendentals is Transcendentals.LIBM and view.elementary else 0.0,
        _elementary_reason,
    ),
    Move(
        "huge_pages",
        lambda choices: choices._replace(pages=Pages.HUGE),
        lambda view: 8.0 if view.choices.pages is Pages.DEFAULT and _large(view, HUGE_BYTES) else 0.0,
        _huge_reason,
    ),
    Move(
        "stream",
        lambda choices: choices._replace(stores=Stores.STREAMED),
        lambda view: 6.0 if view.choices.stores is Stores.CACHED and _large(view, STREAM_BYTES) else 0.0,
        _stream_reason,
    ),
    Move(
        "scratch",
        lambda choices: choices._replace(reuse=Reuse.KEEP if choices.reuse is Reuse.RECOMPUTE else Reuse.RECOMPUTE),
        lambda view: 7.0 if view.choices.reuse is Reuse.RECOMPUTE else 2.5,
        keep_reason,
    ),
    Move(
        "blocked_sums",
        lambda choices: choices._replace(sums=Sums.BLOCKED),
        lambda view: 9.0 if view.choices.sums is Sums.DOUBLE else 0.0,
        sums_reason,
    ),
    Move(
        "plain_sums",
        lambda choices: choices._replace(sums=Sums.PLAIN),
        lambda view: 1.5 if view.choices.sums is Sums.BLOCKED and spare_accuracy(view) else 0.0,
        sums_reason,
    ),
    Move(
        "one_thread",
        lambda choices: choices._replace(threads=1),
        lambda view: 5.0 if view.choices.threads == 0 and _short(view) else 0.0,
        _one_thread_reason,
    ),
    *[_strip_move(strip) for strip in (64, 128, 512, 1024)],
    *[_chains_move(chains) for chains in (1, 2, 8)],
)
