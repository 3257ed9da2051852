"""Turns as plain chat messages: system, user and assistant only, in strict alternation, tool calls as text.

Structured tool calls mean something else to every chat template; text means the same to all. A call is written as

    Call submit

    model_new.py
    ```python
    ...
    ```

and every system message ends with a paragraph that says so, so that a row stands for itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple, TypedDict

from pydantic import JsonValue

from schemas.record import canonical_json
from schemas.trajectory import ToolCall, Trajectory, Turn

CALL_FORM = """\
Tool calls are written as text: a line `Call` with the tool's name, then each file as its path on a line of its own \
and its text in a fenced block. Other arguments stand as JSON on one line before the files. The next user message \
holds the result.\
"""

NO_TOOLS = "[]"
FENCES = {".py": "python", ".cpp": "cpp", ".h": "cpp", ".cu": "cuda", ".cuh": "cuda"}
"""Names of languages after a fence, by suffix."""


class Message(TypedDict):
    """One message of a chat; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


class CallParts(NamedTuple):
    """A tool call taken apart."""

    files: dict[str, str]
    """Texts by path, sorted."""
    rest_json: str | None
    """Arguments that are no files, as canonical JSON; null where there are none."""


def plain_messages(trajectory: Trajectory) -> list[Message]:
    """One message for each turn, in order; `alternate` joins neighbours of one role."""
    messages = [_message(turn, first=index == 0) for index, turn in enumerate(trajectory.turns)]
    if trajectory.tools_json != NO_TOOLS:
        messages[0]["content"] += f"\n\n{CALL_FORM}"
    return messages


def alternate(messages: Sequence[Message]) -> list[Message]:
    """The same conversation without empty assistant messages, neighbours of one role joined by a blank line."""
    joined: list[Message] = []
    for message in messages:
        if message["role"] == "assistant" and not message["content"]:
            continue
        if joined and joined[-1]["role"] == message["role"]:
            content = f"{joined[-1]['content']}\n\n{message['content']}"
            joined[-1] = Message(role=message["role"], content=content)
        else:
            joined.append(message)
    return joined


def conversation_text(messages: Sequence[Message]) -> str:
    """A conversation as one text: each message under a heading with its role."""
    return "\n\n".join(f"### {message['role']}\n{message['content']}" for message in messages)


def call_parts(call: ToolCall) -> CallParts:
    """The files that a call carries, and its other arguments. Raises `ValueError` where its arguments are no JSON."""
    arguments: JsonValue = json.loads(call.arguments_json)
    files = arguments.get("files") if isinstance(arguments, dict) else None
    if not isinstance(arguments, dict) or not isinstance(files, dict):
        return CallParts({}, canonical_json(arguments))
    texts = {path: text for path, text in sorted(files.items()) if isinstance(text, str)}
    if len(texts) < len(files):
        return CallParts({}, canonical_json(arguments))
    rest = {name: value for name, value in arguments.items() if name != "files"}
    return CallParts(texts, canonical_json(rest) if rest else None)


def _message(turn: Turn, *, first: bool) -> Message:
    if turn.role == "assistant":
        return Message(role="assistant", content=_assistant_text(turn))
    # Templates take a system message in the first place only, and few know the role of a tool.
    return Message(role="system" if first else "user", content=turn.content)


def _assistant_text(turn: Turn) -> str:
    thought = f"<think>\n{turn.reasoning}\n</think>" if turn.reasoning else ""
    parts = [thought, turn.content, *(_call_text(call) for call in turn.tool_calls)]
    return "\n\n".join(part for part in parts if part)


def _call_text(call: ToolCall) -> str:
    parts = call_parts(call)
    texts = [f"Call {call.name}"]
    if parts.rest_json is not None:
        texts.append(parts.rest_json)
    return "\n\n".join([*texts, *(f"{path}\n{_fenced(path, text)}" for path, text in parts.files.items())])


def _fenced(path: str, text: str) -> str:
    """A fenced block that nothing inside can close: the fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text if text.endswith("\n") or not text else f"{text}\n"
    return f"{fence}{FENCES.get(PurePosixPath(path).suffix, '')}\n{body}{fence}"
