"""Lets `python -m pipeline` be the command line."""

from pipeline.cli import main

if __name__ == "__main__":
    main()
