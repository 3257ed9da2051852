"""One module a verb: reads tables, calls the stage of the same name, writes tables, says one line."""
