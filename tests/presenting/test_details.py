"""What stands on the details of hosts and workloads: facts that wrap, evidence, output as lines, the console's log."""

from __future__ import annotations

from rich.cells import cell_len

from opsconsole.presenting.drain_detail import drain_runs, drain_steps
from opsconsole.presenting.evidence import evidence_table
from opsconsole.presenting.facts import MOST_LINES, fact_lines
from opsconsole.presenting.gpus import gpus_table
from opsconsole.presenting.logbook import AT_ONCE, Logbook
from opsconsole.presenting.outputs import KEPT, LONGEST, OutputText
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.trends import UNREAD, Trends, spark
from opsconsole.presenting.workload_detail import attempts_table, written
from scheduler_core.ids import DrainId, HostName, RunId
from scheduler_core.observations import (
    DrainRequested,
    HostSeen,
    HostUnreachable,
    MemberExited,
    MemberReleased,
    UndrainRequested,
)
from scheduler_core.units import HOUR, MINUTE
from tests.core.clusters import OPS, PASS, Cluster
from tests.ui.worlds import HOSTILE, FakeSource, busy_world, probe, wide_world


def texts(lines: list[list[Cell]]) -> list[str]:
    return ["".join(cell.text for cell in line) for line in lines]


# -- facts -------------------------------------------------------------------------------------------------------------


def test_facts_wrap_between_words_and_keep_their_colours() -> None:
    said = [Cell("one two three four five six", "bad"), Cell(" seven")]
    lines = fact_lines([("TERM", said), ("EMPTY", [])], 24)
    assert texts(lines) == [" TERM      one two three", "           four five six", "           seven"]
    assert [{cell.token for cell in line[1:]} for line in lines] == [{"bad"}, {"bad", ""}, {""}]


def test_facts_never_take_more_room_than_there_is() -> None:
    for width in (20, 33, 80):
        lines = fact_lines([("TERM", [Cell("漢字" * 200 + " and " + "x" * 300 + " end" * 90)])], width)
        assert len(lines) == MOST_LINES and all(cell_len(text.rstrip()) <= width + 1 for text in texts(lines))
        assert texts(lines)[-1].endswith("…")


# -- evidence ----------------------------------------------------------------------------------------------------------


def test_evidence_is_what_is_so_now_and_then_the_newest() -> None:
    source = busy_world()
    bad = source.probes["gpu003"]
    bad["uptime_s"] = 7200.0
    bad["gpus"][2]["readings"] |= {
        "ecc_volatile_uncorrected": {"v": 3},
        "row_remap_pending": {"v": True},
        "clock_event_reasons": {"v": ["gpu_idle", "hw_thermal_slowdown"]},
    }
    line = {"monotonic_s": 7000.0, "text": HOSTILE, "xid": {"code": 48, "pci": None}}
    source.kernels["gpu003"] = [{"monotonic_s": None, "text": "Link is up", "xid": None}, line]
    view = source.view()
    rows = evidence_table(view, "gpu003").rows
    said = [(row.cells[1].text, row.cells[2].text) for row in rows]
    assert [source_ for source_, _ in said[:5]] == ["verdict"] * 5
    verdicts = [text for _, text in said[:5]]
    assert verdicts[1].startswith("GPU 5: does not answer: GPU is lost [gpu:lost ")
    assert verdicts[0] == (
        "XID 48, uncorrectable memory error, 3m20s ago [xid:48 NVIDIA Xid catalogue 2025-10-29: drain, reset the GPU]"
    )
    assert "; watched, until it has lasted [heat:hardware" in verdicts[3]
    assert ("counter", "GPU 2: ecc volatile uncorrected 3") in said and ("counter", "GPU 2: row remap pending") in said
    assert ("counter", "GPU 2 is slowed down: hw thermal slowdown") in said
    kernel = next(text for source_, text in said if text.startswith("[red]"))
    assert kernel.endswith("[XID 48: uncorrectable memory error; drain, reset the GPU]")
    ages = [row.data["ago_s"] for row in rows if row.cells[1].text not in ("verdict", "warning", "counter")]
    assert ages == sorted(ages)


def test_runs_that_come_and_go_as_they_should_are_no_evidence() -> None:
    cluster, host = Cluster({"a": 1}, {"h1": 8}), HostName("h1")
    source = FakeSource(cluster)
    for n, code in enumerate((0, 7), start=1):
        cluster.running(f"w{n}", "a", 8, HOUR)
        run = RunId(f"w{n}~1")
        source.happen(MemberExited(run, host, code), MemberReleased(run, host), later_ms=1000)
    (row,) = evidence_table(source.view(), "h1").rows
    assert "w2~1 ended on h1: exit status 7" in row.cells[2].text


def test_evidence_of_a_host_without_readings_is_not_that_all_is_well() -> None:
    source = wide_world(1, 2)
    source.probes = {}
    assert "no readings" in evidence_table(source.view(), "gpu001").empty
    source.probes = {"gpu001": probe(2)}
    assert "nothing speaks against it" in evidence_table(source.view(), "gpu001").empty


# -- GPUs --------------------------------------------------------------------------------------------------------------


def test_a_gpu_against_which_something_speaks_has_its_mark() -> None:
    source = busy_world()
    source.probes["gpu003"]["gpus"][2]["readings"]["row_remap_pending"] = {"v": True}
    rows = gpus_table(source.view(), "gpu003").rows
    marks = {row.key: (row.cells[0].text, row.data["health"]) for row in rows}
    assert (marks["gpu:2"], marks["gpu:5"], marks["gpu:1"]) == (("!  2", "warn"), ("✖  5", "fail"), ("1", None))


def test_a_trend_takes_each_reading_once_and_says_what_was_not_read() -> None:
    source, trends = busy_world(), Trends()
    for busy in (0, 50, 100):
        source.probes["gpu004"] = probe(1, busy)
        view = source.view()
        trends.look(view, "gpu004")
        trends.look(view, "gpu004")
    assert trends.of(0) == (0.0, 50.0, 100.0) and spark(trends.of(0), 8) == "▁▅█"
    source.ages["gpu004"] = 60.0
    source.probes["gpu004"] = probe(1, 70)
    trends.look(source.view(), "gpu004")
    assert spark(trends.of(0), 2) == "█" + UNREAD
    trends.look(source.view(), "gpu001")
    assert trends.of(0) == (60.0,), "another host begins anew"


def test_rows_of_gpus_are_not_taken_for_lines_of_the_timeline() -> None:
    keys = [row.key for row in gpus_table(busy_world().view(), "gpu001").rows]
    assert keys == [f"gpu:{slot}" for slot in range(8)]


# -- runs of a workload ------------------------------------------------------------------------------------------------


def test_every_run_says_how_it_ended_the_newest_first() -> None:
    cluster = Cluster({"a": 1}, {"h1": 8})
    source = FakeSource(cluster)
    cluster.running("w", "a", 8, HOUR, owner="ada", resumable=True)
    cluster.later(10 * MINUTE)
    run, host = RunId("w~1"), HostName("h1")
    source.happen(MemberExited(run, host, 3, None, False, "out of memory"), MemberReleased(run, host))
    table = attempts_table(source.view(), "w")
    (row,) = table.rows
    assert row.cells[3].text == "10m" and "exit status 3; out of memory" in row.cells[5].text
    assert row.cells[5].token == "bad" and written(source.view(), "w") == ("w~1", "h1")
    assert written(source.view(), "gone") is None


# -- drains ------------------------------------------------------------------------------------------------------------


def test_an_ended_drain_keeps_what_it_stopped_and_that_the_host_came_back() -> None:
    cluster, h1 = Cluster({"a": 1}, {"h1": 8, "h2": 8}), HostName("h1")
    source = FakeSource(cluster)
    cluster.running("gang", "a", 16, MINUTE, resumable=True)
    cluster.later(2 * MINUTE, DrainRequested(DrainId("d1"), h1, OPS))
    run = cluster.run("gang")
    source.happen(MemberExited(run, h1, None, "SIGTERM", True), MemberReleased(run, h1))
    source.happen(cluster.seen("h1", empty=True), later_ms=PASS)
    assert source.state.drains[DrainId("d1")].ended == "drained"
    h2 = HostName("h2")
    source.happen(MemberExited(run, h2, None, "SIGTERM", True), MemberReleased(run, h2), later_ms=1000)
    assert [row.key for row in drain_runs(source.view(), "d1").rows] == [run]
    source.happen(UndrainRequested(h1, OPS))
    source.happen(DrainRequested(DrainId("d2"), h1, OPS), later_ms=HOUR)
    last = drain_steps(source.view(), "d1").rows[-1]
    assert last.cells[0].text == "✓" and last.cells[3].text.startswith("it served again, until the drain of ")


# -- output ------------------------------------------------------------------------------------------------------------


def lines_of(text: OutputText) -> list[str]:
    return [line.text for line in text.lines]


def test_output_in_pieces_is_the_same_lines() -> None:
    whole = "α β\r\n\tγ\x1b[31m red \x1b]0;title\x07end\n10%\r20%\rdone\nlast".encode()
    expected = ["α β", "        γ red end", "done", "last"]
    for size in (1, 2, 3, 7, len(whole)):
        text = OutputText()
        for at in range(0, len(whole), size):
            text.feed(whole[at : at + size])
        assert lines_of(text) == expected, size
        assert [line.number for line in text.lines] == [1, 2, 3, 4]


def test_output_is_capped_in_lines_and_in_their_length() -> None:
    text = OutputText()
    for _ in range(4):
        text.feed(b"x" * 100_000)
    assert len(lines_of(text)) == 1 and len(lines_of(text)[0]) == LONGEST
    text.feed(b"\n" + b"y\n" * 2 * KEPT)
    assert len(text.lines) == KEPT
    assert f"{KEPT + 1} older lines no longer kept here" in text.table("Output", "").title


def test_output_that_is_no_text_is_shown_all_the_same() -> None:
    text = OutputText()
    text.feed(bytes(range(256)) + b"\n\xff\xfe\n")
    assert all(line.isprintable() for line in lines_of(text))


# -- the log -----------------------------------------------------------------------------------------------------------


def told(log: Logbook) -> list[str]:
    return [f"{entry.about}: {entry.text}" for entry in log.entries]


def test_the_log_tells_what_is_different_and_nothing_twice() -> None:
    source, log = busy_world(), Logbook()
    log.look(source.view(), {})
    assert told(log) == [
        "leader: leader: serve at head",
        "link: gpu006 unreachable: auth failed: Permission denied (publickey)",
    ]
    log.look(source.view(), {"source": "source failed: x"})
    log.look(source.view(), {"source": "source failed: x"})
    source.happen(HostSeen(HostName("gpu006"), "boot1"), later_ms=1000)
    log.look(source.view(), {})
    assert told(log)[2:] == ["worker: source: source failed: x", "link: gpu006 answers again", "worker: source: over"]


def test_a_storm_is_a_few_lines() -> None:
    source, log = wide_world(40, 1), Logbook()
    log.look(source.view(), {})
    source.happen(*(HostUnreachable(HostName(name), "timed out") for name in source.cluster.hosts), later_ms=1000)
    before = len(log.entries)
    log.look(source.view(), {})
    assert len(log.entries) - before == AT_ONCE + 1 and "and 28 hosts, 28 of them away" in told(log)[-1]
