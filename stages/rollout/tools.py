"""The tools that an episode offers, in the form of OpenAI's function calling."""

from __future__ import annotations

from schemas.candidate import ENTRY, SourceFile
from schemas.record import canonical_json
from schemas.trajectory import ToolCall

SUBMIT = "submit"

TOOLS_JSON = canonical_json(
    [
        {
            "type": "function",
            "function": {
                "name": SUBMIT,
                "description": "Build, verify and profile a candidate. Returns the verdict.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "files": {
                            "type": "object",
                            "description": f"File contents by relative path; {ENTRY} must define ModelNew.",
                            "additionalProperties": {"type": "string"},
                        }
                    },
                    "required": ["files"],
                },
            },
        }
    ]
)


def submit_call(number: int, files: tuple[SourceFile, ...]) -> ToolCall:
    """The call by which an assistant turn submits files; `number` counts the episode's submissions from one."""
    arguments = canonical_json({"files": {file.path: file.text for file in files}})
    return ToolCall(id=f"call_{number}", name=SUBMIT, arguments_json=arguments)
