"""If these fail, a table does not read back as what was written, or an impossible record can be stored."""

from __future__ import annotations

import datetime
import typing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.arrow import arrow_schema
from schemas.baseline import Baseline
from schemas.candidate import Candidate, SourceFile
from schemas.evaluation import Evaluation, Fault, Verdict
from schemas.hardware import Hardware
from schemas.label import LabelledTrajectory, RewardSpec
from schemas.operator import Operator, RefusedOperator
from schemas.record import Identified, Record, canonical_json, content_id
from schemas.task import RejectedTask, Task
from schemas.tensor import Domain, Dtype, TensorSpec
from schemas.timing import Ratio
from schemas.trajectory import Trajectory
from tests import factories

RECORDS = (
    Operator, RefusedOperator, Task, RejectedTask, Hardware, Baseline, Candidate, Evaluation, Fault, Trajectory,
    RewardSpec, LabelledTrajectory,
)  # fmt: skip
ALLOWED = (pa.string(), pa.bool_(), pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC"))


def _leaves(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_list(kind):
        return _leaves(kind.value_type)
    if pa.types.is_struct(kind):
        assert kind.num_fields > 0
        return [leaf for field in kind for leaf in _leaves(field.type)]
    return [kind]


@pytest.mark.parametrize("record", RECORDS)
def test_tables_hold_only_types_that_every_reader_knows(record: type[Record]):
    for field in arrow_schema(record):
        assert all(leaf in ALLOWED for leaf in _leaves(field.type)), field


text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
sizes = st.integers(1, 2**40)
positive = st.floats(1e-300, 1e300)


@st.composite
def specs(draw: st.DrawFn) -> TensorSpec:
    domain = draw(st.sampled_from(Domain))
    bound = draw(st.integers(1, 2**60)) if domain is Domain.INDEX else None
    dtypes = {Domain.INDEX: [Dtype.INT64, Dtype.INT32], Domain.BOOLEAN: [Dtype.BOOL]}
    floats = [dtype for dtype in Dtype if dtype.is_floating]
    dtype = draw(st.sampled_from(dtypes.get(domain, floats)))
    return TensorSpec(shape=draw(st.lists(sizes, max_size=5).map(tuple)), dtype=dtype, domain=domain, bound=bound)


@st.composite
def ratios(draw: st.DrawFn) -> Ratio:
    low, value, high = sorted(draw(st.tuples(positive, positive, positive)))
    return Ratio(value=value, low=low, high=high)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    base = factories.task().model_dump()
    nearest = draw(st.none() | st.tuples(text, st.floats(0, 1)))
    names = draw(st.lists(text, min_size=1, max_size=5).map(tuple))
    return Task.create(
        **{key: value for key, value in base.items() if key not in CHANGED},
        source=draw(text),
        name=draw(text),
        operators=names,
        operator_ids=names,
        families=("pointwise",) * len(names),
        inputs=draw(st.lists(specs(), min_size=1, max_size=3).map(tuple)),
        outputs=draw(st.lists(specs(), min_size=1, max_size=3).map(tuple)),
        estimated_seconds=draw(positive),
        nearest_benchmark=None if nearest is None else nearest[0],
        nearest_score=None if nearest is None else nearest[1],
    )


CHANGED = (
    "task_id", "source", "name", "operators", "operator_ids", "families", "inputs", "outputs", "estimated_seconds",
    "nearest_benchmark", "nearest_score",
)  # fmt: skip


@st.composite
def candidates(draw: st.DrawFn) -> Candidate:
    names = draw(st.sets(st.from_regex(r"[a-z]{1,8}\.cu", fullmatch=True), max_size=3)) | {"model_new.py"}
    return Candidate.create(
        task_id=draw(text),
        language=draw(st.sampled_from(["cpp", "cuda", "triton", "cupy", "python"])),
        files=tuple(SourceFile(path=name, text=draw(text)) for name in sorted(names)),
        policy=draw(text),
        parent_candidate_id=draw(st.none() | text),
    )


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    verdict = draw(st.sampled_from(Verdict))
    timed = verdict in (Verdict.CORRECT, Verdict.SUSPECT)
    ratio = draw(st.none() | ratios()) if timed else None
    return factories.evaluation(draw(candidates()), verdict, speedup=ratio, compiled=ratio and draw(ratios()))


@given(st.lists(st.one_of(tasks(), candidates(), evaluations()), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_record_survives_parquet(tmp_path: Path, records: list[Record]):
    for kind in {type(record) for record in records}:
        written = [record for record in records if type(record) is kind]
        pq.write_table(pa.Table.from_pylist([r.to_row() for r in written], arrow_schema(kind)), tmp_path / "t")
        table = pq.read_table(tmp_path / "t")
        assert table.schema.equals(arrow_schema(kind))
        assert [kind.from_row(row) for row in table.to_pylist()] == written


def test_every_record_of_a_run_survives_its_table():
    world = factories.world()
    for records in world:
        kind = type(records[0])
        table = pa.Table.from_pylist([record.to_row() for record in records], arrow_schema(kind))
        assert [kind.from_row(row) for row in table.to_pylist()] == list(records)


@given(candidates())
@settings(max_examples=30, deadline=None)
def test_an_id_follows_behaviour_and_nothing_else(candidate: Candidate):
    content = {name: value for name, value in candidate if name != "candidate_id"}
    renamed = Candidate.create(**{**content, "policy": "other", "parent_candidate_id": "p"})
    assert renamed.candidate_id == candidate.candidate_id
    files = (*candidate.files[:-1], candidate.files[-1].model_copy(update={"text": candidate.files[-1].text + " "}))
    edited = Candidate.create(**{**content, "files": files})
    assert edited.candidate_id != candidate.candidate_id


@pytest.mark.parametrize("kind", [record for record in RECORDS if issubclass(record, Identified)])
def test_identity_names_real_fields_and_a_forged_id_is_refused(kind: type[Identified]):
    assert set(kind.IDENTITY) <= set(kind.model_fields)
    first = next(iter(kind.model_fields))
    examples = {type(record): record for records in factories.world() for record in records}
    examples |= {Hardware: factories.hardware(), Operator: factories.operator()}
    if kind in examples:
        with pytest.raises(pydantic.ValidationError, match="does not match the content"):
            kind.from_row({**examples[kind].to_row(), first: "0" * 24})


IMPOSSIBLE = {
    "a failed build with times": {"verdict": "build_failed"},
    "a wrong answer with times": {"verdict": "wrong"},
    "a correct one without verification": {"verification": None, "profile": None},
    "a suspect without a rule": {"verdict": "suspect"},
    "a correct one with a rule": {"rule": "late_write"},
    "a correct one whose build failed": {"build": factories.build(ok=False).model_dump()},
    "times on a failed verification": {"verification": factories.verification(passed=False).model_dump()},
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_evaluations_are_refused(name: str):
    good = factories.evaluation(factories.candidate(factories.task()), speedup=2.0, compiled=1.5)
    with pytest.raises(pydantic.ValidationError):
        Evaluation.model_validate({**good.model_dump(), **IMPOSSIBLE[name]})


@pytest.mark.parametrize("path", ["/etc/passwd", "../up.py", "a/../../b", "", "a//b", "./a", "a\0b"])
def test_a_candidates_file_cannot_leave_its_workspace(path: str):
    with pytest.raises(pydantic.ValidationError):
        SourceFile(path=path, text="")


@pytest.mark.parametrize(
    "change",
    [
        {"terminated": True, "truncated": True},
        {"terminated": False, "truncated": False},
        {"stop_reason": "fault"},
        {"turns": ()},
    ],
)
def test_impossible_trajectories_are_refused(change: dict[str, object]):
    trajectory = factories.world().trajectories[0]
    with pytest.raises(pydantic.ValidationError):
        Trajectory.model_validate({**trajectory.model_dump(), **change})


def test_canonical_json_is_one_text_a_value_and_refuses_what_json_cannot_say():
    assert canonical_json({"b": 1, "a": [True, None]}) == canonical_json({"a": [True, None], "b": 1})
    assert content_id(1) != content_id("1")
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(float("nan"))


def test_a_type_that_no_table_may_hold_is_named():
    class Bad(Record):
        when: typing.Any
        other: datetime.date

    with pytest.raises(TypeError, match="no table may hold"):
        arrow_schema(Bad)
