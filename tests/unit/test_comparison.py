"""Results of comparisons: files, frontiers."""

import json
import math

import pytest

from widemargin.report import Candidate, Comparison
from widemargin.report.comparison import with_frontiers


def a_candidate(name="one", mean=0.9, batch=1.0, alone=10.0, **more):
    more = {"scores": (mean,), "splits": (0,), "difference": mean - 1, **more}
    return Candidate(name, "ours", "as it comes", mean=mean, batch_us=batch, alone_us=alone, **more)


def names(candidates, which="on_frontier"):
    return [row.name for row in candidates if getattr(row, which)]


def test_a_comparison_survives_its_file(tmp_path):
    left_out = Candidate("two", "peer", "", note="left out")
    before = Comparison("accuracy", (a_candidate(n_basis=3), left_out), ("Take it.",), n_rows=7)
    before.save(tmp_path / "found.json")
    after = Comparison.load(tmp_path / "found.json")
    assert after.to_dict() == before.to_dict()
    assert after.candidates[0] == before.candidates[0]
    assert math.isnan(after.candidates[1].mean)
    assert not after.candidates[1].measured
    assert "NaN" not in (tmp_path / "found.json").read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no JSON file"),
        ("[]", "no comparison"),
        ('{"format": "widemargin comparison", "version": 99}', "newer widemargin"),
        ('{"format": "widemargin comparison", "version": 1}', "damaged"),
    ],
)
def test_another_file_is_refused(content, message, tmp_path):
    (tmp_path / "other.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Comparison.load(tmp_path / "other.json")


def test_the_frontier_is_of_those_that_no_other_beats():
    rows = [
        a_candidate("slow and best", 0.95, 100, 100),
        a_candidate("quick", 0.9, 1, 200),
        a_candidate("behind", 0.89, 2, 300),
        a_candidate("constant", 0.99, 0.1, 0.1, family="constant"),
        Candidate("left out", "peer", ""),
    ]
    marked = with_frontiers(rows)
    assert names(marked) == ["slow and best", "quick"]
    assert names(marked, "on_frontier_alone") == ["slow and best"]
    twins = with_frontiers([a_candidate("a"), a_candidate("b")])
    assert names(twins) == ["a", "b"]


def test_json_has_no_number_that_was_not_measured():
    found = Comparison("accuracy", (Candidate("one", "peer", ""),)).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False))["candidates"][0]["mean"] is None
