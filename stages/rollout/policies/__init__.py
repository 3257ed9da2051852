"""Policies: ways to write candidates, all behind `base.Policy`.

- `schedule.py` writes a kernel for the task's graph and climbs on the judge's feedback
- `fault.py` plants a bug in such a kernel and repairs it
- `workshop.py`, `moves.py`, `prose.py`: an episode's drafts, the next change to a schedule, what is said
- `mutations/` holds the bugs, `codegen/` the kernel generator
"""

from __future__ import annotations

from stages.rollout.policies.base import Action, Brief, Episode, Observation, Policy
from stages.rollout.policies.fault import FaultPolicy
from stages.rollout.policies.schedule import SchedulePolicy

__all__ = ["Action", "Brief", "Episode", "Observation", "Policy", "policy"]

_POLICIES: dict[str, type[SchedulePolicy] | type[FaultPolicy]] = {"schedule": SchedulePolicy, "fault": FaultPolicy}


def policy(name: str) -> Policy:
    """The policy of that name, as in `params.yaml`; raises `KeyError` for an unknown one."""
    return _POLICIES[name]()
