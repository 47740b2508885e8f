"""How a host is, from what it says: every row of the table, what is filed under what, and what nobody may conclude."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsconsole.health.rules import Override, Severity, builtin_rules
from opsconsole.health.verdict import OF_SEVERITY, Said, Status, Verdict, judge
from opsconsole.hostkit.kernel import Reader
from opsconsole.hostkit.readings import CORE_KEYS
from tests.health.said import GPUS, UPTIME_S, but, gpu, lost, pci, probe, rules_of, verdict, xid

RULES = builtin_rules()
# The table of severities, code by code; D/F and – are those of its own lines.
APPLICATION = [*range(96, 106), *range(126, 136), 137, 139]
TABLE = {
    "I": [43, 45, 141, 152, 153, 154, 162, 164, 165],
    "A": [
        8,
        11,
        13,
        25,
        31,
        32,
        *range(39, 42),
        60,
        *range(68, 73),
        *range(75, 78),
        80,
        *range(82, 87),
        88,
        89,
        *APPLICATION,
    ],
    "W": [37, 38, 44, 66, 67, 61, 63, 78, 92, 93, 121, *range(144, 151), 157, 159, 160, 161, 168],
    "D": [74, 94, 109, 136, 151, 155, 156, 163, 166, 167, 169, 170],
    "F": [46, 48, 54, 62, 64, 79, 95, 110, 119, 120, 140, 143, 158, 171, 172],
}


def lines(*texts: str) -> list[dict[str, Any]]:
    """As an agent sends them, one a second, the last one now."""
    reader, found = Reader(), []
    for n, text in enumerate(texts):
        if (line := reader.feed(text)) is not None:
            found.append({"monotonic_s": UPTIME_S - (len(texts) - n - 1), **line})
    return found


@pytest.mark.parametrize(("letter", "code"), [(letter, code) for letter, codes in TABLE.items() for code in codes])
def test_each_code_is_as_bad_as_the_table_says(letter: str, code: int) -> None:
    rule = RULES[f"xid:{code}"]
    assert rule.severity.value == letter and rule.action and rule.meaning
    if code not in (45, 171, 172):
        assert verdict(None, xid(code)).status is OF_SEVERITY[Severity(letter)]


def test_every_rule_has_a_source_and_a_date() -> None:
    assert all(rule.source and rule.date and rule.action for rule in RULES)
    assert {int(rule.id[4:]) for rule in RULES if rule.id[4:].isdigit() and rule.id.startswith("xid")} == {
        code for codes in TABLE.values() for code in codes
    }


@pytest.mark.parametrize("code", [62, 63, 92, 94, 95, 109])
def test_where_sources_disagree_it_is_shown(code: int) -> None:
    (one,) = verdict(None, xid(code)).findings
    assert ("gpud 4a8de33", dict(RULES[f"xid:{code}"].others)["gpud 4a8de33"]) in one.differ


def test_only_an_uncontained_error_ends_the_wait_of_a_drain() -> None:
    assert [rule.id for rule in RULES if rule.ends_wait] == ["xid:95"]


# -- what nobody may conclude


def test_a_sound_host_is_well() -> None:
    found = verdict()
    assert (found.status, found.findings, found.unknown) == (Status.OK, (), ())


def test_silence_is_unknown() -> None:
    found = judge(Said(GPUS, None), RULES)
    assert (found.status, found.was) == (Status.UNKNOWN, Status.UNKNOWN) and found.unknown
    old = verdict(fresh=False)
    assert (old.status, old.was) == (Status.UNKNOWN, Status.OK)
    broken = verdict(None, xid(79), fresh=False)
    assert (broken.status, broken.was) == (Status.UNKNOWN, Status.FAIL), "what was known is kept, and is not of now"


@pytest.mark.parametrize(
    ("driver", "rule", "status"),
    [
        ("Driver/library version mismatch (NVML 18)", "driver:mismatch", Status.DEGRADED),
        ("nvidia-smi: Failed to initialize NVML: Driver/library version mismatch", "driver:mismatch", Status.DEGRADED),
        ("driver hang: temperature_c of 0000:10:00.0", "driver:hang", Status.FAIL),
        ("Driver Not Loaded (NVML 9)", "driver:not-loaded", Status.FAIL),
        ("NVML Shared Library Not Found (NVML 12)", "driver:no-library", Status.FAIL),
        ("No devices were found", "driver:no-devices", Status.FAIL),
        ("nvidia-smi shows no GPU", "driver:no-devices", Status.FAIL),
        ("Mismatch in versions between nvidia-smi and NVML.", "driver:tool", Status.UNKNOWN),
        ("Failed to initialize NVML: Unknown Error", "driver:unavailable", Status.UNKNOWN),
        ("something that no driver has said yet", "driver:unavailable", Status.UNKNOWN),
    ],
)
def test_a_driver_that_does_not_answer(driver: str, rule: str, status: Status) -> None:
    gone = [lost(slot, driver) for slot in range(GPUS)]
    for gpus in ([], gone):
        found = verdict(probe(gpus, driver={"failed": driver}))
        assert (rules_of(found), found.status) == ([rule], status), "its GPUs say nothing by themselves"


def test_no_driver_is_no_matter_where_no_gpu_is_expected() -> None:
    said = probe([], driver={"absent": True})
    assert verdict(said).status is Status.FAIL
    assert judge(Said(0, said, 0.0), RULES).status is Status.UNKNOWN


@pytest.mark.parametrize("why", ["GPU is lost (NVML 15)", "gone from the PCI bus", "Unknown Error (NVML 999)"])
def test_one_lost_gpu_leaves_the_others_as_they_are(why: str) -> None:
    found = verdict(but(5, lost(5, why)))
    assert [(one.rule.id, one.slot) for one in found.findings] == [("gpu:lost", 5)]
    assert found.status is Status.FAIL and found.findings[0].evidence[0].text == why


def test_one_that_needs_a_reset_is_not_lost() -> None:
    found = verdict(but(5, lost(5, "GPU requires reset (NVML 16)")))
    assert (rules_of(found), found.status) == (["gpu:reset-required"], Status.DEGRADED)


def test_one_that_is_not_shown_at_all_is_missing() -> None:
    found = verdict(probe([gpu(slot) for slot in range(GPUS) if slot != 2]))
    assert [(one.rule.id, one.slot) for one in found.findings] == [("gpu:missing", 2)]


def test_readings_that_nobody_may_see_are_not_well() -> None:
    denied = {"denied": "Insufficient Permissions"}
    assert rules_of(verdict(but(1, gpu(1, power_w=denied)))) == ["gpu:denied"]
    blind = but(1, {**gpu(1), "uuid": denied, "readings": dict.fromkeys(CORE_KEYS, denied)})
    assert verdict(blind).status is Status.UNKNOWN
    processes = verdict(but(1, gpu(1, processes=denied)))
    assert (rules_of(processes), processes.status) == (["gpu:processes"], Status.WARN)


def test_a_gpu_of_which_everything_is_absent_is_not_well() -> None:
    found = verdict(but(1, {**gpu(1), "readings": {key: {"absent": True} for key in CORE_KEYS}}))
    assert found.status is Status.UNKNOWN and "GPU 1" in found.unknown[0]


def test_a_kernel_log_that_cannot_be_read_is_told() -> None:
    found = verdict(probe(host={"kernel_log": {"denied": "/dev/kmsg: Operation not permitted"}}))
    assert (rules_of(found), found.status) == (["host:kernel-log"], Status.WARN)


@given(st.lists(st.tuples(st.integers(0, GPUS - 1), st.sampled_from(sorted(gpu(0)["readings"])), st.booleans())))
@settings(max_examples=50, deadline=None)
def test_no_gap_is_ever_well(gaps: list[tuple[int, str, bool]]) -> None:
    """A reading that fails or is denied makes no host better, and each but the absent is told."""
    said = probe()
    for slot, key, denied in gaps:
        said["gpus"][slot]["readings"][key] = {"denied": "no"} if denied else {"failed": "ERR!"}
    found = verdict(said)
    assert (found.status is Status.OK) is not bool(gaps)


junk = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(["driver", "gpus", "host", "uptime_s"]), junk, st.lists(st.dictionaries(st.text(max_size=3), junk))
)
@settings(max_examples=25, deadline=None)
def test_foreign_data_breaks_nothing_and_is_never_well(key: str, value: Any, kernel: list[Any]) -> None:
    found = judge(Said(GPUS, {**probe(), key: value}, 0.0, kernel), RULES)
    if key in ("driver", "gpus"):
        assert found.status is not Status.OK or (key == "driver" and isinstance(value, dict) and "v" in value)


# -- what is filed under what


def test_a_45_is_filed_under_what_it_names() -> None:
    found = verdict(
        None,
        *lines(
            "NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)",
            "NVRM: Xid (PCI:0000:04:00): 45, pid=9, name=python3, Ch 00000001 caused by previous Xid 149",
            "NVRM: Xid (PCI:0000:04:00): 45, pid=9, name=python3, Ch 00000002 caused by previous Xid 149",
        ),
    )
    (one,) = found.findings
    assert (one.rule.id, one.count, one.severity, found.status) == ("xid:149", 1, Severity.DEGRADED, Status.DEGRADED)
    assert len(one.evidence) == 3 and "149" in one.evidence[0].text


def test_a_45_whose_cause_was_not_seen_is_the_only_word_of_it() -> None:
    (one,) = verdict(None, xid(45, text="Ch 1 caused by previous Xid 79", caused_by=79)).findings
    assert (one.rule.id, one.severity) == ("xid:79", Severity.FATAL)


def test_a_45_without_a_name_belongs_to_what_came_just_before_on_its_gpu() -> None:
    assert rules_of(verdict(None, xid(79), xid(45, ago_s=4))) == ["xid:79"]
    assert rules_of(verdict(None, xid(79, ago_s=500), xid(45, ago_s=4))) == ["xid:79", "xid:45"]
    assert rules_of(verdict(None, xid(79, slot=1), xid(45, slot=2))) == ["xid:79", "xid:45"]
    assert rules_of(verdict(None, xid(45))) == ["xid:45"], "alone"


def test_details_of_48_are_its_own() -> None:
    (one,) = verdict(None, xid(48), xid(171, ago_s=4), xid(45, ago_s=3)).findings
    assert (one.rule.id, one.count, len(one.evidence)) == ("xid:48", 1, 3)
    assert rules_of(verdict(None, xid(172))) == ["xid:48"], "the line of the 48 may be gone"


def test_what_fell_off_the_bus_without_a_number_is_79() -> None:
    found = verdict(
        None,
        *lines(
            f"NVRM: The NVIDIA GPU {pci(3)[:-2]}.0",
            "NVRM: (PCI ID: 10de:26b5) installed in this system has",
            "NVRM: fallen off the bus and is not responding to commands.",
        ),
    )
    assert [(one.rule.id, one.slot) for one in found.findings] == [("xid:79", 3)]


def test_what_a_test_tool_injected_is_shown_and_never_acted_on() -> None:
    found = verdict(None, *lines("NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0 i1 Link 08 (0x00)"))
    assert found.status is Status.OK and "test tool" in found.findings[0].action


@pytest.mark.parametrize(
    ("line", "rule", "status"),
    [
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x8)", "xid:145", Status.WARN),
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x0)", "xid:149", Status.DEGRADED),
        ("1234, something new", "xid:1234", Status.WARN),
    ],
)
def test_the_line_says_how_bad_it_is(line: str, rule: str, status: Status) -> None:
    found = verdict(None, *lines(f"NVRM: Xid (PCI:0000:04:00): {line}"))
    assert (rules_of(found), found.status) == ([rule], status)


@pytest.mark.parametrize(
    ("line", "rule", "status"),
    [
        ("12028, Non-fatal, Link 32 egress non-posted PRIV error (First)", "sxid:nonfatal", Status.WARN),
        ("20034, Fatal, Link 30 LTSSM Fault Up", "sxid:fatal", Status.FAIL),
        ("23001, Fatal, Link 30 something", "sxid:always-fatal", Status.FAIL),
        ("29999, Link 30 something", "sxid:29999", Status.WARN),
    ],
)
def test_switches_say_how_bad_it_is(line: str, rule: str, status: Status) -> None:
    found = verdict(None, *lines(f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): {line}"))
    assert (rules_of(found), found.status) == ([rule], status)


def test_the_kernels_other_words() -> None:
    found = verdict(
        None,
        *lines(
            "pcieport 0000:00:01.0: AER: Corrected error message received from 0000:04:00.0",
            "Out of memory: Killed process 77 (python)",
            "INFO: task nvidia-smi:77 blocked for more than 120 seconds.",
        ),
    )
    assert sorted(rules_of(found)) == ["host:aer", "host:hang", "host:oom"] and found.status is Status.WARN
    fatal = lines("pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer")
    assert verdict(None, *fatal).status is Status.DEGRADED
    less = lines("pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer")
    assert verdict(None, *less).status is Status.WARN


# -- repeats


def test_the_same_place_in_several_jobs_is_hardware() -> None:
    where = "Graphics SM Warp Exception on (GPC 4, TPC 1, SM 0): Illegal Address"
    first, second = xid(13, text=where, pid=7), xid(13, text=where, pid=8, ago_s=4)
    assert verdict(None, first, {**first}).status is Status.OK, "one job, several lines"
    assert verdict(None, first, second).status is Status.DEGRADED
    elsewhere = xid(13, text=where.replace("TPC 1", "TPC 2"), pid=8)
    assert verdict(None, first, elsewhere).status is Status.OK


def test_many_programs_with_bad_streams_are_hardware() -> None:
    found = [xid(32, process=name, ago_s=ago) for ago, name in enumerate(["a", "b", "c"])]
    assert verdict(None, *found[:2]).status is Status.OK
    assert verdict(None, *found).status is Status.DEGRADED


def test_again_is_worse_than_once() -> None:
    once = verdict(None, xid(79)).findings[0]
    again = verdict(None, xid(79, ago_s=9000), xid(79)).findings[0]
    assert (again.count, "RMA" in once.action, "RMA" in again.action) == (2, False, True)


def test_what_only_was_to_be_watched_is_forgotten_after_a_day() -> None:
    said = probe(uptime_s=10 * 86_400.0)
    for code, rules in ((92, []), (94, ["xid:94"])):
        old = {**xid(code), "monotonic_s": 8 * 86_400.0}
        assert rules_of(verdict(said, old)) == rules


def test_what_a_person_has_seen_to_is_over() -> None:
    assert verdict(None, xid(79, ago_s=100), cleared_ago_s=50).status is Status.OK
    assert verdict(None, xid(79, ago_s=10), cleared_ago_s=50).status is Status.FAIL


# -- the driver's own word


@pytest.mark.parametrize(
    ("asked", "status"), [(1, Status.DEGRADED), (2, Status.FAIL), (7, Status.FAIL), (99, Status.FAIL)]
)
def test_the_drivers_recovery_action_comes_first(asked: int, status: Status) -> None:
    found = verdict(but(3, gpu(3, recovery_action=asked)), xid(48))
    assert found.status is status
    ours = next(one for one in found.findings if one.rule.id == "xid:48")
    if asked in RULES.recovery:
        assert ours.action == RULES.recovery[asked].action
        assert ("NVIDIA Xid catalogue", "drain, reset the GPU") in ours.differ
    assert "driver:recovery" in rules_of(found)


def test_none_is_no_action_and_takes_none_away() -> None:
    (one,) = verdict(but(3, gpu(3, recovery_action=0)), xid(48)).findings
    assert one.action == "drain, reset the GPU" and ("the driver", "none") in one.differ


def test_what_the_kernel_told_counts_where_the_driver_cannot_be_asked() -> None:
    said = but(3, gpu(3, recovery_action={"absent": True}))
    told = xid(154, recovery_action=2, ago_s=3)
    found = verdict(said, xid(48), told)
    assert next(one for one in found.findings if one.rule.id == "xid:48").action == "reboot"
    assert verdict(said, told).status is Status.FAIL, "without any other error"
    now = verdict(but(3, gpu(3, recovery_action=0)), told)
    assert now.status is Status.OK, "as it is now it asks for nothing"


def test_the_drivers_word_is_about_its_own_gpu() -> None:
    found = verdict(but(3, gpu(3, recovery_action=2)), xid(94, slot=4))
    assert next(one for one in found.findings if one.slot == 4).severity is Severity.DEGRADED


# -- readings


@pytest.mark.parametrize(
    ("readings", "rule", "status"),
    [
        ({"ecc_volatile_uncorrected": 1}, "ecc:uncorrected", Status.DEGRADED),
        ({"ecc_aggregate_uncorrected": 1}, "ecc:history", Status.OK),
        ({"row_remap_pending": True}, "ecc:remap-pending", Status.WARN),
        ({"row_remap_failed": True}, "ecc:remap-failed", Status.FAIL),
        ({"rows_remapped_uncorrected": 600}, "ecc:remaps", Status.DEGRADED),
        ({"remap_spare_banks": {"max": 639, "none": 1}}, "ecc:no-spare", Status.WARN),
        ({"retired_pages_pending": True}, "ecc:pages-pending", Status.WARN),
        ({"retired_pages_double_bit": 60}, "ecc:pages", Status.DEGRADED),
    ],
)
def test_counters_speak_at_once(readings: dict[str, Any], rule: str, status: Status) -> None:
    found = verdict(but(3, gpu(3, **readings)))
    assert [(one.rule.id, one.slot) for one in found.findings] == [(rule, 3)] and found.status is status


@pytest.mark.parametrize(
    ("readings", "rule"),
    [
        ({"clock_event_reasons": ["hw_thermal_slowdown"]}, "heat:hardware"),
        ({"clock_event_reasons": ["sw_thermal_slowdown"]}, "heat:software"),
        ({"clock_event_reasons": ["hw_power_brake_slowdown"]}, "power:brake"),
        ({"clock_event_reasons": ["hw_slowdown"]}, "power:slowdown"),
        ({"temperature_margin_c": -1}, "heat:margin"),
        ({"pcie_width": 8}, "pcie:width"),
        ({"pcie_generation": 1, "utilization_percent": 90}, "pcie:generation"),
        ({"nvlinks_up": 17, "nvlinks_down": [4]}, "nvlink:down"),
        ({"nvlinks_up": 0, "nvlinks_down": [0, 1]}, "nvlink:down"),
        ({"power_w": {"failed": "ERR!"}}, "gpu:unreadable"),
        ({"temperature_c": 46}, "heat:peers"),
    ],
)
def test_what_must_last_is_only_watched_at_first(readings: dict[str, Any], rule: str) -> None:
    found = verdict(but(3, gpu(3, **readings)))
    assert [(one.rule.id, one.slot, one.confirmed) for one in found.findings] == [(rule, 3, False)]
    assert found.status is Status.WARN


@pytest.mark.parametrize(
    "readings",
    [
        {"pcie_generation": 1},  # an idle link saves power
        {"temperature_c": 45},
        {"clock_event_reasons": ["gpu_idle", "sw_power_cap"]},
        {"rows_remapped_uncorrected": 512},
        {"sm_clock_mhz": 200},  # idle
        {"ecc_volatile_uncorrected": {"absent": True}, "nvlinks_up": {"absent": True}},
    ],
)
def test_what_is_no_fault(readings: dict[str, Any]) -> None:
    assert verdict(but(3, gpu(3, **readings))).status is Status.OK


def test_links_that_no_card_of_the_host_has_are_down_by_design() -> None:
    bridgeless = [gpu(slot, nvlinks_up=0, nvlinks_down=[0, 1]) for slot in range(GPUS)]
    assert verdict(probe(bridgeless)).status is Status.OK


def test_a_busy_gpu_is_compared_with_busy_ones() -> None:
    busy = [gpu(slot, utilization_percent=95, temperature_c=70, sm_clock_mhz=1900) for slot in range(GPUS)]
    assert verdict(probe(busy)).status is Status.OK
    busy[2] = gpu(2, utilization_percent=95, temperature_c=86, sm_clock_mhz=1500)
    found = verdict(probe(busy))
    assert [(one.rule.id, one.slot) for one in found.findings] == [("clock:peers", 2), ("heat:peers", 2)]
    alone = [gpu(slot) for slot in range(GPUS)]
    alone[2] = busy[2]
    assert verdict(probe(alone)).status is Status.OK, "nobody to compare with"


# -- the site's word


def overridden(name: str, by: Override, said: Any = None, *kernel: Any) -> Verdict:
    return judge(Said(GPUS, said or probe(), 0.0, kernel), RULES.overridden({name: by}))


def test_a_site_may_say_otherwise_and_both_are_shown() -> None:
    found = overridden("xid:94", Override(Severity.WATCH, "watch it", because="our firmware"), None, xid(94))
    (one,) = found.findings
    assert (found.status, one.action, one.rule.source) == (Status.WARN, "watch it", "this site")
    assert any("D: restart the application" in says for _, says in one.differ) and "our firmware" in one.rule.meaning


def test_a_site_may_move_a_limit() -> None:
    warm = but(3, gpu(3, temperature_c=46))
    assert overridden("heat:peers", Override(limit=20.0), warm).status is Status.OK
    some = but(3, gpu(3, rows_remapped_uncorrected=20))
    assert overridden("ecc:remaps", Override(limit=10.0), some).status is Status.DEGRADED


def test_a_site_may_know_a_code_that_nobody_else_does() -> None:
    assert overridden("xid:999", Override(Severity.INFO, "none"), None, xid(999)).status is Status.OK
    assert (
        overridden(
            "sxid:20034",
            Override(Severity.WATCH),
            None,
            *lines("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"),
        ).status
        is Status.WARN
    )
