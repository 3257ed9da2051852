"""The page: whole without a network, and safe with strangers' text in it."""

from __future__ import annotations

from html.parser import HTMLParser

from schemas.evaluation import Verdict
from schemas.parameters import LabelParameters
from stages.label import label
from stages.report import funnel, page
from stages.report.viewer import MAX_CHARS, choose, cut
from tests.factories import FASTER, WRONG, baseline, candidate, evaluation, trajectory, world

HOSTILE = (
    "</pre></details></style><script>alert(1)</script><img src=x onerror=alert(2)>\"' onmouseover='alert(3)"
    "<iframe srcdoc='x'>--><svg/onload=alert(4)>{{ 7 * 7 }}{% raw %}&lt;b&gt;<a href='javascript:alert(5)'>"
)
TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "h1", "h2", "p", "ul", "li", "b",
    "br", "small", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "svg", "line",
    "rect", "text", "details", "summary", "span", "pre", "article",
}  # fmt: skip
VOID = {"meta", "br"}


class Document(HTMLParser):
    """Tags, attributes and text of a page; refuses a page whose tags do not close in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.open = set(), [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page_of(made):
    labelled = label(made.trajectories, made.evaluations, made.tasks, LabelParameters())
    metrics = funnel(
        [],
        [],
        made.tasks,
        made.tasks,
        [],
        made.baselines,
        made.candidates,
        made.evaluations,
        made.trajectories,
        labelled,
        [],
    )
    return page(metrics, labelled, made.evaluations, made.tasks, made.baselines)


def hostile_world():
    made = world(1, [])
    (of,) = made.tasks
    of = of.model_copy(update={"name": HOSTILE})
    made.tasks[:] = [of]
    machine = made.baselines[0].hardware.model_copy(update={"name": HOSTILE, "architecture": HOSTILE})
    made.baselines[:] = [made.baselines[0].model_copy(update={"hardware": machine})]
    tried = candidate(of, HOSTILE)
    judged = evaluation(tried, speedup=2.0, message=HOSTILE)
    made.candidates.append(tried)
    made.evaluations.append(judged)
    made.trajectories.append(trajectory(of, [(tried, judged)], policy=HOSTILE, last_words=HOSTILE, system=HOSTILE))
    return made


def test_hostile_text_stays_text():
    document = Document(page_of(hostile_world()))
    assert document.tags <= TAGS
    assert not [name for name, _ in document.attributes if name.startswith("on") or name in ("src", "href", "srcdoc")]
    assert "".join(document.text).count(HOSTILE) >= 6


def test_the_page_forbids_scripts_and_fetches_nothing():
    document = Document(page_of(world(2)))
    assert document.tags <= TAGS
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in document.attributes
    assert not [value for name, value in document.attributes if name in ("src", "href")]
    style = page_of(world(1)).split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_shows_verdicts_speeds_tasks_and_episodes():
    made = world(2)
    text = " ".join("".join(Document(page_of(made)).text).split())
    for expected in (
        "relu_add_0",
        "3.00x [2.94, 3.06]",
        "Speed-up over eager: 10 candidates, median 1.40x, from 1.00x to 3.00x.",
        "8 of 8 kept trajectories",
        "fault, episode 2: build_failed, correct best reward 3, 3x eager, stopped",
        "reward -1, return-to-go 2",
        "You write fast kernels.",
        "# schedule 0 2",
    ):
        assert expected in text


def test_a_run_of_nothing_still_has_a_page():
    text = " ".join("".join(Document(page_of(world(0))).text).split())
    assert "No trajectory was kept." in text
    assert "No candidate has a speed." in text


def test_a_task_that_cannot_be_compiled_shows_dashes():
    made = world(1, [("schedule", "stopped", (WRONG,))])
    made.baselines[:] = [baseline(made.tasks[0], compile_speedup=None)]
    assert "<td>–</td>" in page_of(made)


def test_long_text_is_cut_and_says_so():
    made = world(1, [])
    tried = candidate(made.tasks[0], "x" * (MAX_CHARS + 1234))
    judged = evaluation(tried, Verdict.WRONG)
    made.candidates.append(tried)
    made.evaluations.append(judged)
    made.trajectories.append(trajectory(made.tasks[0], [(tried, judged)]))
    assert "1,234 more characters are not shown here" in page_of(made)
    assert cut("short") == (None, "short", 0)


def test_few_of_many_trajectories_cover_every_task_with_its_most_instructive():
    made = world(5, [("fault", "turn_limit", (WRONG,)), ("fault", "stopped", (WRONG, FASTER))])
    rows = label(made.trajectories, made.evaluations, made.tasks, LabelParameters())
    chosen = choose(rows, 5)
    assert {row.trajectory.task_id for row in chosen} == {of.task_id for of in made.tasks}
    assert all(row.final_reward == 2.0 for row in chosen)
    assert choose(rows[::-1], 5) == chosen


def test_the_same_run_gives_the_same_page():
    assert page_of(world(2)) == page_of(world(2))
