"""Bugs that the compiler or the interpreter finds."""

from __future__ import annotations

import random
import re

from stages.rollout.policies.mutations.base import (
    Edit,
    Kind,
    Mutation,
    anywhere,
    kernel_lines,
    replaced,
    substituting,
)


def _missing_brace(text: str, rng: random.Random) -> Edit | None:
    lines = text.splitlines()
    places = [place for place in kernel_lines(lines) if lines[place].strip() == "}"]
    return replaced(lines, rng.choice(places), None) if places else None


def _missing_helper(text: str, rng: random.Random) -> Edit | None:
    """A function that is called but was forgotten when the file was put together."""
    lines = text.splitlines()
    heads = [
        place for place, line in enumerate(lines)
        if (match := re.match(r"static inline float (v_\w+)\(", line)) and text.count(f"{match.group(1)}(") > 1
    ]  # fmt: skip
    if not heads:
        return None
    start = rng.choice(heads)
    end = next(place for place in range(start, len(lines)) if lines[place].endswith("}"))
    changed = lines[:start] + lines[end + 1 :]
    return Edit("\n".join(changed) + "\n", start + 1, lines[start].strip(), "")


def _misspelt(text: str, rng: random.Random) -> Edit | None:
    """A local value under a name that was never declared."""
    lines = text.splitlines()
    declared = re.compile(r"const (?:float|double|int64_t) (\w+) =")
    places = list(kernel_lines(lines))
    names = sorted({match.group(1) for place in places for match in declared.finditer(lines[place])})
    uses = [
        (place, match)
        for place in places
        for name in names
        for match in re.finditer(rf"(?<![\w.]){name}(?!\w)", lines[place])
        if f" {name} =" not in lines[place]
    ]
    if not uses:
        return _misspelt_loop(lines, rng)
    place, match = rng.choice(uses)
    line, name = lines[place], match.group(0)
    return replaced(lines, place, f"{line[: match.start()]}{name}_val{line[match.end() :]}")


def _misspelt_loop(lines: list[str], rng: random.Random) -> Edit | None:
    heads = [place for place in kernel_lines(lines) if "for (int64_t " in lines[place]]
    if not heads:
        return None
    place = rng.choice(heads)
    return replaced(lines, place, re.sub(r"\+\+(\w+)\)", r"++\1dx)", lines[place]))


def _missing_argument(text: str, rng: random.Random) -> Edit | None:
    """A kernel call with one argument less than the kernel has parameters."""
    lines = text.splitlines()
    calls = [place for place, line in enumerate(lines) if re.match(r"  \w+kernel\d+\(.+, .+\);$", line)]
    if not calls:
        return None
    place = rng.choice(calls)
    head, arguments = lines[place].split("(", 1)
    kept = arguments.removesuffix(");").split(", ")
    kept.pop(rng.randrange(len(kept)))
    return replaced(lines, place, f"{head}({', '.join(kept)});")


def _open_call(text: str, rng: random.Random) -> Edit | None:
    """`load_inline(` without its closing bracket: no Python at all."""
    del rng
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if line.startswith("kernel = load_inline(")), None)
    if start is None:
        return None
    end = next(place for place in range(start, len(lines)) if lines[place] == ")")
    return replaced(lines, end, None)


BUILD: tuple[Mutation, ...] = (
    Mutation(
        "missing_semicolon", Kind.BUILD, substituting(r"(?<=[\w)\]]);$", lambda _: ""),
        "a semicolon is missing at the end of the line",
    ),
    Mutation(
        "undeclared_identifier", Kind.BUILD, _misspelt,
        "the name is misspelt; it was declared without the suffix",
    ),
    Mutation("missing_brace", Kind.BUILD, _missing_brace, "a closing brace is missing"),
    Mutation(
        "missing_helper", Kind.BUILD, _missing_helper,
        "the helper is called but its definition is not in the file",
    ),
    Mutation(
        "missing_argument", Kind.BUILD, _missing_argument,
        "the call passes one argument less than the kernel takes",
    ),
    Mutation(
        "tensor_for_pointer", Kind.BUILD, anywhere(r"(?<=[(, ])(\w+)\.data_ptr<float>\(\)", lambda m: m.group(1)),
        "the kernel wants the data pointer, not the tensor",
    ),
    Mutation(
        "wrong_binding", Kind.BUILD, anywhere(r'functions=\["fused"', lambda _: 'functions=["fused_forward"'),
        "the name in `functions` is not the name of the C++ function",
    ),
    Mutation(
        "unbalanced_bracket", Kind.BUILD, substituting(r"\);$", lambda _: ";"),
        "a closing bracket is missing",
    ),
    Mutation(
        "constant_accumulator", Kind.BUILD,
        substituting(r"^(\s+)(float|double) (\w+_acc) =", lambda m: f"{m.group(1)}const {m.group(2)} {m.group(3)} ="),
        "the accumulator was declared const",
    ),
    Mutation(
        "wrong_type", Kind.BUILD, anywhere(r"^torch::Tensor fused\(", lambda _: "torch::Tensors fused("),
        "the type is called torch::Tensor",
    ),
    Mutation("open_call", Kind.BUILD, _open_call, "the call of load_inline was never closed"),
)  # fmt: skip
