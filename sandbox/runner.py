"""The untrusted side: loads a model and runs it on whatever slots it is told to, until told to end.

Everything in this process may be taken over by the candidate. Nothing here is believed: the judge looks at
the slots' bytes at the moment a message arrives, on its own clock.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from sandbox.channel import Answer, Order, Parameters, receive_order, send_answer
from sandbox.device import Device, open_device
from sandbox.device.memory import Field, HostRegion, Region
from sandbox.slots import fields_from_json

MAX_PAYLOAD = 1 << 20
MAX_FDS = 4
SHIFTS = 8
"""Most results held beside a block's."""
CONSTRUCTION_SEED = 0
"""Both conventions of the field seed before construction; weights are re-drawn by the judge afterwards."""


def main(payload: dict[str, Any], fds: list[int]) -> None:
    """Entry of a runner: opens its device, then waits on its channel (`fds[0]`) to be told what to run.

    That message carries roles, layouts and what to load, with the descriptors of the weights and of the slots.
    """
    channel = socket.socket(fileno=fds[0])
    torch.set_num_threads(payload["threads"])
    try:
        device = open_device(payload["device"])
        device.touch()
        device.synchronize()
        send_answer(channel, Answer.OPEN)
        words, (weights, *shared), _, _ = socket.recv_fds(channel, MAX_PAYLOAD, MAX_FDS)
        payload = json.loads(words)
        with torch.no_grad():
            slots = device.runner_slots(shared, payload["slots"]["slot_bytes"] * payload["slots"]["slots"])
            model = _load(payload, device)
            mode = _set_weights(model, payload["weights"], weights)
            inputs, outputs = _views(slots, payload["slots"])
            device.synchronize()
            send_answer(channel, Answer.READY, mode, handle=slots.handle)
            _serve(channel, device, model, inputs, outputs)
    except BaseException:
        traceback.print_exc()
        send_answer(channel, Answer.FAILED)
        raise SystemExit(1) from None


def _serve(
    channel: socket.socket,
    device: Device,
    model: torch.nn.Module,
    inputs: list[list[torch.Tensor]],
    outputs: list[list[torch.Tensor]],
) -> None:
    held = _shift(device, outputs, len(outputs) + SHIFTS)  # so many are kept by torch's pool from now on
    while True:
        held = _shift(device, outputs, random.randrange(SHIFTS))  # noqa: F841  (held until the next block)
        order, sequence, slots = receive_order(channel)
        if order is Order.WAKE:
            device.touch()
            device.synchronize()
            send_answer(channel, Answer.AWAKE, sequence=sequence)
            order, sequence, slots = receive_order(channel, spin=True)
        if order is not Order.RUN:
            return
        results = [model(*inputs[slot]) for slot in slots]
        if not slots:
            device.touch()
        device.synchronize()
        send_answer(channel, Answer.COMPUTED, sequence=sequence)
        if receive_order(channel, spin=device.spins)[0] is not Order.STORE:
            return
        for slot in slots:
            _store(results.pop(0), outputs[slot])
        device.synchronize()
        send_answer(channel, Answer.STORED, sequence=sequence)


def _shift(device: Device, outputs: list[list[torch.Tensor]], count: int) -> list[torch.Tensor]:
    """Results to hold beside the next block's, which therefore stand elsewhere in the device's memory.

    Where they stand makes a kernel up to 2 % faster or slower on a GPU: a block's worth of luck, not a process's.
    """
    if device.kind == "cpu":
        return []
    return [torch.empty_like(output) for _ in range(count) for output in outputs[0]]


def _store(result: object, targets: list[torch.Tensor]) -> None:
    """Copy one call's result into its slot; says what is wrong with it where it does not fit."""
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(values) != len(targets):
        raise ValueError(f"forward returned {len(values)} values, the task's Model returns {len(targets)}")
    for value, target in zip(values, targets, strict=True):
        if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
            raise TypeError(f"forward returned a {type(value).__name__}, the task's Model returns a torch.Tensor")
        if value.device.type != target.device.type:
            raise ValueError(
                f"forward returned a tensor on {value.device}, the task's Model returns one on {target.device}"
            )
        if value.shape != target.shape or value.dtype != target.dtype:
            raise ValueError(
                f"forward returned {value.dtype} of shape {tuple(value.shape)}, "
                f"the task's Model returns {target.dtype} of shape {tuple(target.shape)}"
            )
        target.copy_(value)


def _load(payload: dict[str, Any], device: Device) -> torch.nn.Module:
    model = _load_candidate(payload) if payload["role"] == "candidate" else load_reference(payload, device)
    return model.to(device.place)


def load_reference(payload: dict[str, Any], device: Device) -> torch.nn.Module:
    """A task's own model on the device, as eager or compiled as the payload's role says."""
    from sandbox.reference import load_task_source  # a candidate's process never holds this

    model = load_task_source(payload["source"]).construct(CONSTRUCTION_SEED).to(device.place)
    return torch.compile(model, fullgraph=True) if payload["role"] == "compiled" else model  # type: ignore[return-value]


def _load_candidate(payload: dict[str, Any]) -> torch.nn.Module:
    from sandbox.extension import loader

    loader.install(payload["artefacts"])
    workspace = Path(payload["workspace"])
    os.chdir(workspace)
    sys.path.insert(0, str(workspace))
    spec = importlib.util.spec_from_file_location("model_new", workspace / "model_new.py")
    if spec is None or spec.loader is None:
        raise ImportError("the workspace has no model_new.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_new"] = module
    spec.loader.exec_module(module)
    torch.manual_seed(CONSTRUCTION_SEED)
    model = module.ModelNew(*payload["init_inputs"])
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"ModelNew is a {type(model).__name__}, not a torch.nn.Module")
    return model.eval()


def _set_weights(model: torch.nn.Module, weights: dict[str, Any], fd: int) -> Parameters:
    """Give the model the judge's weights by name; where names differ it keeps those of its seeded construction."""
    fields = dict(zip(weights["names"], fields_from_json(weights["fields"]), strict=True))
    region = HostRegion(fd, max(weights["nbytes"], 1))
    if not fields:
        return Parameters.NONE
    state = {name.removeprefix("_orig_mod."): value for name, value in model.state_dict().items()}
    if {name: tuple(value.shape) for name, value in state.items()} != {n: f.shape for n, f in fields.items()}:
        return Parameters.SEEDED
    for name, value in state.items():
        value.copy_(region.tensor(fields[name]))
    return Parameters.STATE_DICT


def _views(slots: Region, layout: dict[str, Any]) -> tuple[list[list[torch.Tensor]], list[list[torch.Tensor]]]:
    def of(fields: tuple[Field, ...]) -> list[list[torch.Tensor]]:
        return [[slots.tensor(f, slot * layout["slot_bytes"]) for f in fields] for slot in range(layout["slots"])]

    return of(fields_from_json(layout["inputs"])), of(fields_from_json(layout["outputs"]))
