"""One package per DVC stage, named after it. Records in, records out; no I/O, no scheduling."""
