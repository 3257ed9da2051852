"""Synthesis: operators become tasks, modules of one to five operators that are worth a kernel.

`compose` joins operators by the names of their dimensions; `probes` runs every step at tiny sizes to see that it means
something; `sizes` chooses dimensions and the batch so that eager mode takes the wanted time; `source` writes the file.
"""

from stages.synthesize.tasks import Exhausted, synthesize

__all__ = ["Exhausted", "synthesize"]
