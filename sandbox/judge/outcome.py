"""What one step of judging found: the pieces that an evaluation is put together from."""

from __future__ import annotations

from schemas.evaluation import Profile, Verdict, Verification
from schemas.record import Record


class Outcome(Record):
    """A verification's or a profile's result. A null verdict means that nothing is held against the candidate."""

    verdict: Verdict | None
    rule: str | None
    """For a suspect: the rule that fired."""
    message: str
    """One sentence for the policy; empty where the step passed."""
    verification: Verification | None
    profile: Profile | None
    confinement: str
