"""Runs hostile code once and says what happened. Knows nothing of stages, Dask or Parquet.

Contained: every build and run is a process group of its own, forked from a clean process, in a scratch folder, with an
environment that holds nothing of the caller's, no new privileges, and limits on memory, CPU time, processes, files and
output. It is killed as a group at its deadline, and what it detached is killed when it ends. It shares with its judge
the slots of tensors and a channel on which it can say nothing that counts as a verdict; expected outputs, seeds, the
clock and the reference never enter it.

Not contained yet: a candidate can read what the user who runs the pipeline can read, and write where that user can
write; it can open sockets; it can signal that user's processes. Run candidates that you do not trust as a user of
their own, on a machine that holds nothing else.
"""
