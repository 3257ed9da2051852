"""The machine at hand with its peak rates, measured once and then kept, so that a second run sees the same figures."""

from __future__ import annotations

from pipeline.errors import UserError
from pipeline.ledger import Ledger, ledger_key
from sandbox.errors import SandboxFault
from sandbox.hardware import identity, measure_hardware
from schemas.hardware import Hardware


def hardware(ledger: Ledger) -> Hardware:
    """The hardware record of this machine. Raises `UserError` where there is no compiler."""
    try:
        key = ledger_key("hardware", *identity())
        stored = ledger.get(key)
        if stored is not None:
            return Hardware.model_validate_json(stored)
        measured = measure_hardware()
    except SandboxFault as error:
        raise UserError(str(error)) from error
    ledger.put(key, "hardware", measured.model_dump_json())
    return measured
