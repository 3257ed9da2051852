"""Plain messages: what a chat template sees. A broken order or a lost file breaks trainers far from here."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from schemas.record import canonical_json
from schemas.trajectory import ToolCall, Trajectory, Turn
from stages.export.messages import CALL_FORM, alternate, call_parts, conversation_text, plain_messages
from tests.factories import turn

NAMES = st.from_regex(r"[a-z]{1,8}(\.py|\.cu|\.cpp|)", fullmatch=True)
WORDS = st.text(alphabet="ab \n", max_size=5)
CODE = st.text(alphabet=st.sampled_from("ab`~\n \\\"'{}<>é"), max_size=60)


def assistant(content, *calls, reasoning=None):
    return Turn(
        role="assistant",
        content=content,
        reasoning=reasoning,
        tool_calls=calls,
        tool_call_id=None,
        candidate_id=None,
        evaluation_id=None,
    )


def conversation(*turns, tools="[]"):
    opening = (turn("system", "Rules."), turn("user", "Do it."))
    return Trajectory.create(
        task_id="t",
        hardware_id="h",
        policy="p",
        policy_version="v",
        episode=0,
        turns=(*opening, *turns),
        tools_json=tools,
        stop_reason="stopped",
        terminated=True,
        truncated=False,
    )


@st.composite
def conversations(draw):
    """Any legal order of turns: several calls in one, results out of turn, silence, chatter."""
    turns, calls = [], 0
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["user", "system", "assistant", "call"]))
        text = draw(WORDS)
        if kind == "call":
            made = [
                ToolCall(id=f"c{calls + i}", name="submit", arguments_json="{}") for i in range(draw(st.integers(1, 2)))
            ]
            calls += len(made)
            turns.append(assistant(text, *made))
            turns += [turn("tool", draw(WORDS), tool_call_id=call.id) for call in made]
        else:
            turns.append(assistant(text) if kind == "assistant" else turn(kind, text))
    return conversation(*turns)


@given(conversations())
def test_roles_alternate_after_one_system_message(played):
    roles = [message["role"] for message in alternate(plain_messages(played))]
    assert roles[:2] == ["system", "user"]
    assert roles[1:] == [("user", "assistant")[index % 2] for index in range(len(roles) - 1)]


@given(conversations())
def test_no_text_is_lost(played):
    whole = conversation_text(alternate(plain_messages(played)))
    assert all(said.content in whole for said in played.turns)


@given(st.dictionaries(NAMES, CODE, min_size=1, max_size=3))
def test_files_can_be_read_back_from_the_text(files):
    call = ToolCall(id="c", name="submit", arguments_json=canonical_json({"files": files}))
    text = plain_messages(conversation(assistant("See below.", call)))[2]["content"]
    read, position = {}, text.index("Call submit\n\n") + len("Call submit\n\n")
    while position < len(text):
        opening = re.compile(r"(.+)\n(`{3,})\w*\n").match(text, position)
        close = text.index(f"\n{opening[2]}", opening.end() - 1)
        read[opening[1]] = text[opening.end() : close + 1]
        position = close + 1 + len(opening[2]) + 2
    assert read == {path: code if code.endswith("\n") or not code else f"{code}\n" for path, code in files.items()}


def test_a_call_reads_like_this():
    arguments = canonical_json({"files": {"model_new.py": "x = 1"}, "note": "first"})
    call = ToolCall(id="c", name="submit", arguments_json=arguments)
    text = plain_messages(conversation(assistant("One pass.", call, reasoning="Memory-bound.")))[2]["content"]
    assert text == (
        "<think>\nMemory-bound.\n</think>\n\nOne pass.\n\nCall submit\n\n"
        '{"note":"first"}\n\nmodel_new.py\n```python\nx = 1\n```'
    )


def test_arguments_that_are_no_files_stay_json():
    for arguments in ('{"files":["a"]}', '{"files":{"a":1}}', '{"path":"a"}', '"a"'):
        parts = call_parts(ToolCall(id="c", name="read", arguments_json=arguments))
        assert parts == ({}, arguments)


def test_the_form_of_calls_is_told_where_there_are_tools():
    assert CALL_FORM not in plain_messages(conversation())[0]["content"]
    assert plain_messages(conversation(tools='[{"type":"function"}]'))[0]["content"].endswith(CALL_FORM)
