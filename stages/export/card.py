"""The dataset card: front matter that loaders obey, and a body written from the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from schemas.evaluation import Verdict
from stages.export.facts import Facts
from stages.export.splits import SPLITS
from stages.export.tables import ViewTables
from stages.label.rewards import RULES

TEMPLATE = "card.md.jinja"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""The Hub's size classes: fewer rows than the number, and the class's name."""
LARGEST = "1M<n<10M"


def card_text(views: Sequence[ViewTables], facts: Facts) -> str:
    """The text of the dataset's `README.md`.

    The front matter lists a configuration for every view with rows and a split for every part with rows, because
    loaders refuse empty ones. It names no features: those would be enforced, and readers disagree on their spelling.
    """
    filled = [tables for tables in views if tables.files]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, not HTML: `cell` escapes what a table would trip over
    )
    environment.filters["cell"] = _cell
    body = environment.get_template(TEMPLATE).render(
        views=views,
        default=filled[0],
        splits=SPLITS,
        facts=facts,
        verdicts=[str(verdict) for verdict in Verdict],
        rules=RULES,
        shared=[column for column in views[0].view.columns if all(column in other.view.columns for other in views)],
    )
    return f"---\n{_front_matter(filled, facts)}---\n{body}"


def _front_matter(views: Sequence[ViewTables], facts: Facts) -> str:
    rows = sum(tables.rows(split) for tables in views for split in SPLITS)
    content = {
        "license": "cc-by-4.0",
        "language": ["en", "code"],
        "pretty_name": "KernelQuarry trajectories",
        "task_categories": ["text-generation", "reinforcement-learning"],
        "size_categories": [next((name for limit, name in SIZES if rows < limit), LARGEST)],
        "tags": ["agent-traces", "offline-rl", "performance", "pytorch", *facts.languages],
        "configs": [_config(tables, default=tables is views[0]) for tables in views],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _config(tables: ViewTables, *, default: bool) -> dict[str, object]:
    files = [
        {"split": split, "path": f"{tables.view.name}/{split}-*.parquet"} for split in SPLITS if tables.rows(split)
    ]
    return {"config_name": tables.view.name, **({"default": True} if default else {}), "data_files": files}


def _cell(value: object) -> str:
    """A value inside a cell of a Markdown table: one line, no column ends."""
    return " ".join(str(value).split()).replace("|", "\\|")
