"""Reads a compiler's messages: whose fault a failure is, and what its author should see of it."""

from __future__ import annotations

import re

SHOWN_LINES = 24
SHOWN_ERRORS = 3
LINE_LENGTH = 240

UNKNOWN_TO_SLIM = re.compile(
    r"error: .*("
    r"is not a member of .(slim|torch|at|c10|pybind11|py|caffe2)\b"
    r"|.(torch|at|c10|pybind11|py)::[A-Za-z_:]+. has not been declared"
    r"|(class|struct) slim::\w+. has no member named"
    r"|no match for .operator.*slim::"
    r"|no matching function for call to .*slim::"
    r"|.(TORCH|AT|C10|TORCH_LIBRARY)_?[A-Z_]*. (was not declared|has not been declared|does not name)"
    r"|expected constructor, destructor, or type conversion before"
    # no header makes a pointer of a tensor: that is a forgotten data_ptr()
    r"|cannot convert .*slim::.* to .(?!(const )?(float|double|int|long|char|void|bool|[a-z0-9]+_t)\s?\*)"
    r"|could not convert .*slim::"
    r"|.using\w*. .*slim::"
    r")"
    r"|fatal error: (torch|ATen|c10|caffe2|pybind11)/\S+: No such file"
    # the same from nvcc
    r"|error: namespace .(slim|torch|at|c10|pybind11)\S*. has no member"
    r"|error: class .slim::\S+. has no member"
    r"|error: no operator .\S+. matches these operands"
    r"|error: identifier .(TORCH|AT|C10|CUDA)_[A-Z_]+. is undefined"
    r"|error: no (suitable|instance of).* slim::"
    r"|error: cannot open source file .(torch|ATen|c10|caffe2|pybind11)/"
)


def unknown_to_slim(messages: str) -> str | None:
    """The first message that says the slim headers lack something; null where the candidate itself is at fault.

    An error in the candidate's own names fails against torch's headers as well, only forty times slower.
    """
    for line in messages.splitlines():
        if UNKNOWN_TO_SLIM.search(line):
            return _tidy(line.partition("error: ")[2])[:LINE_LENGTH]
    return None


def own_frames(traceback: str) -> str:
    """A traceback with only the frames of the candidate's own files, and the exception."""
    kept: list[str] = []
    own = False
    for line in traceback.strip().splitlines():
        if line.startswith('  File "'):
            own = "/sandbox/" not in line and "<frozen" not in line
        elif not line.startswith("    "):
            own = not line.startswith("Traceback")
        if own:
            kept.append(line)
    return readable("\n".join(kept[-SHOWN_LINES:]))


def readable(messages: str, folder: str = "") -> str:
    """The first errors with their lines and carets, without paths of this machine."""
    kept: list[str] = []
    errors = 0
    for line in messages.splitlines():
        if re.search(r"\berror\b:", line):
            errors += 1
            if errors > SHOWN_ERRORS:
                break
        if line.startswith(("In file included from", "                 from", "compilation terminated")):
            continue
        kept.append(_tidy(line)[:LINE_LENGTH])
    text = "\n".join(kept[:SHOWN_LINES])
    return text.replace(folder, "") if folder else text


def _tidy(line: str) -> str:
    line = re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", line)
    return re.sub(r"\bslim::", "torch::", line)
