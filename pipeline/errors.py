"""The two ways in which a verb fails: the user can mend it, or the infrastructure has to."""


class UserError(Exception):
    """Something that the user can mend. Its text is one sentence that names the place and the remedy."""


class InfrastructureFault(Exception):
    """A failure of ours: a lost worker, a full disk, an unsteady machine. Never a candidate's verdict."""
