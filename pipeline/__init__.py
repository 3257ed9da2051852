"""The verbs: command line, settings, tables, ledger, workers, progress. The only place with I/O."""
