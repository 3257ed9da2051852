"""What the other rooms know of a reference: its graph, its identity and its work. Pure; no scheduling, no I/O."""
