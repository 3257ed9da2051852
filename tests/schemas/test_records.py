"""If these fail, a table does not read back as what was written, or an impossible record can be stored."""

from __future__ import annotations

import datetime
import typing

import pyarrow as pa
import pyarrow.parquet as pq
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.arrow import arrow_schema
from schemas.candidate import Candidate, SourceFile
from schemas.evaluation import Evaluation
from schemas.hardware import Hardware
from schemas.label import LabelledTrajectory, RewardSpec
from schemas.operator import Operator
from schemas.record import Identified, Record, canonical_json, content_id
from schemas.tensor import Domain, Dtype, TensorSpec
from schemas.trajectory import Trajectory
from tests import factories
from tests.schemas.strategies import TABLES, candidates

ALLOWED = (pa.string(), pa.bool_(), pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC"))


def _leaves(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_list(kind):
        return _leaves(kind.value_type)
    if pa.types.is_struct(kind):
        assert kind.num_fields > 0
        return [leaf for field in kind for leaf in _leaves(field.type)]
    return [kind]


@pytest.mark.parametrize("record", TABLES)
def test_tables_hold_only_types_that_every_reader_knows(record: type[Record]):
    for field in arrow_schema(record):
        assert all(leaf in ALLOWED for leaf in _leaves(field.type)), field


@pytest.mark.parametrize("kind", TABLES)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_record_survives_parquet(kind: type[Record], data: st.DataObject):
    written = data.draw(st.lists(TABLES[kind], max_size=3))
    table = pa.Table.from_pylist([record.to_row() for record in written], arrow_schema(kind))
    file = pa.BufferOutputStream()
    pq.write_table(table, file, compression="zstd", store_schema=False)
    read = pq.read_table(pa.BufferReader(file.getvalue()))
    assert read.schema.equals(arrow_schema(kind))
    assert [kind.from_row(row) for row in read.to_pylist()] == written


def test_every_record_of_a_run_survives_its_table():
    world = factories.world()
    for records in world:
        kind = type(records[0])
        table = pa.Table.from_pylist([record.to_row() for record in records], arrow_schema(kind))
        assert [kind.from_row(row) for row in table.to_pylist()] == list(records)


@given(candidates)
@settings(max_examples=30, deadline=None)
def test_an_id_follows_behaviour_and_nothing_else(candidate: Candidate):
    content = {name: value for name, value in candidate if name != "candidate_id"}
    renamed = Candidate.create(**{**content, "policy": "other", "parent_candidate_id": "p"})
    assert renamed.candidate_id == candidate.candidate_id
    files = (*candidate.files[:-1], candidate.files[-1].model_copy(update={"text": candidate.files[-1].text + " "}))
    edited = Candidate.create(**{**content, "files": files})
    assert edited.candidate_id != candidate.candidate_id


@pytest.mark.parametrize("kind", [record for record in TABLES if issubclass(record, Identified)])
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


FORBIDDEN = {
    "an interval beside its value": (factories.ratio(1.0), {"low": 1.5}),
    "a time of zero": (factories.timing(1.0), {"seconds": 0.0}),
    "a time that is no number": (factories.timing(1.0), {"seconds": float("nan")}),
    "a time without samples": (factories.timing(1.0), {"samples": ()}),
    "an empty dimension": (TensorSpec(shape=(2,)), {"shape": (0,)}),
    "an index without a bound": (TensorSpec(shape=(2,)), {"dtype": Dtype.INT64, "domain": Domain.INDEX}),
    "a bound of no index": (TensorSpec(shape=(2,)), {"bound": 3}),
    "an integer that is any real number": (TensorSpec(shape=(2,)), {"dtype": Dtype.INT64}),
    "an operator with an argument too many": (factories.operator(), {"arguments": ()}),
    "a function with a constructor": (factories.operator(), {"constructor": "torch.nn.ReLU()"}),
    "a task whose operators have no family": (factories.task(), {"families": ()}),
    "a task without inputs": (factories.task(), {"inputs": ()}),
    "a score of no benchmark item": (factories.task(), {"nearest_score": 0.5}),
    "a candidate without its entry": (
        factories.candidate(factories.task()),
        {"files": (SourceFile(path="kernel.cpp", text=""),)},
    ),
    "a file twice": (
        factories.candidate(factories.task()),
        {"files": (SourceFile(path="model_new.py", text="a"), SourceFile(path="model_new.py", text="b"))},
    ),
    "an unknown field": (factories.timing(1.0), {"host": "here"}),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_cannot_be_cannot_be_recorded(name: str):
    record, change = FORBIDDEN[name]
    values = {**dict(record), **change}
    make = type(record)
    if isinstance(record, Identified):
        values.pop(next(iter(values)))
        make = type(record).create  # fills in the id that fits, so that not merely the id is at fault
    with pytest.raises(pydantic.ValidationError) as caught:
        make(**values)
    assert "does not match the content" not in str(caught.value)


def test_a_kept_row_has_no_reason_to_be_dropped_and_a_dropped_one_has():
    trajectory = factories.trajectory(factories.task(), [])
    fields = {
        "trajectory_id": trajectory.trajectory_id, "group_id": "g", "split_group": "s", "trajectory": trajectory,
        "reward_spec": RewardSpec.create(name="milestone", parameters_json="{}"), "steps": (), "final_reward": None,
        "return_total": 0.0, "best_evaluation_id": None, "best_speedup": None,
    }  # fmt: skip
    LabelledTrajectory(**fields, keep=True, drop_reason=None)
    for keep, reason in ((True, "noise"), (False, None)):
        with pytest.raises(pydantic.ValidationError, match="a dropped trajectory, and no other, has a reason"):
            LabelledTrajectory(**fields, keep=keep, drop_reason=reason)


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
