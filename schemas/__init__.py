"""The nouns of the pipeline: frozen records, their Arrow schemas and the parameters. Imports nothing of ours."""
