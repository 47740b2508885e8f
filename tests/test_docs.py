"""The documents against the code: every key is described, every default and command is true, every link leads on."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path

import pytest

from opsconsole.cli import main
from opsconsole.cli.parser import build_parser
from opsconsole.config import budgets, clusters, health, inventory, knobs, reach, snapshot
from opsconsole.settings import ABOUT
from opsconsole.ui.actions import ACTIONS
from opsconsole.ui.keymap import shown_key
from scheduler_core.policy import Policy
from tests.cli.told import told
from tests.core.clusters import Cluster

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TABLE = (ROOT / "docs/cli.md").read_text()
CODE = re.compile(r"`([^`\n]+)`")
KEYS = {
    "docs/inventory.md": (
        *inventory.TOP,
        *health.FIELDS,
        *health.RULE_FIELDS,
        *clusters.HOST_FIELDS,
        *clusters.CLUSTER_FIELDS,
        *reach.SSH_FIELDS,
        *budgets.FIELDS,
        *knobs.KNOBS,
        *knobs.LATER,
        "min_runtime_bounds",
    ),
    "docs/config.md": tuple(ABOUT),
    "docs/snapshot.md": (*snapshot.TOP, *snapshot.HOST_FIELDS, *snapshot.WORKLOAD_FIELDS, *snapshot.STATES),
}


@pytest.mark.parametrize("page", KEYS)
def test_every_key_of_a_file_is_described(page: str) -> None:
    text = (ROOT / page).read_text()
    words = {word for code in CODE.findall(text) for word in re.findall(r"\w+", code)}
    assert not [key for key in KEYS[page] if key not in words]


def test_the_defaults_of_the_policy_are_those_of_the_code() -> None:
    told = dict(
        re.findall(r"^\| `(\w+)` \| ([^|]+) \|.*\| \d+ \|$", (ROOT / "docs/inventory.md").read_text(), re.MULTILINE)
    )
    assert told == {name: plainly(value) for name, value in knobs.write_policy(Policy(), defaults=True).items()}


def plainly(value: object) -> str:
    """As people write it in YAML."""
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def commands_of(parser: argparse.ArgumentParser) -> list[str]:
    """Those that `--help` lists."""
    (action,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return [listed.dest for listed in action._choices_actions]


def test_every_command_is_in_the_list_of_commands() -> None:
    listed = set(re.findall(r"[\w-]+", TABLE))
    assert not [command for command in commands_of(build_parser()) if command not in listed]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_tells_to_type_can_be_typed(page: Path) -> None:
    """Commands of ours as they stand there; optional parts are taken, redirections left out. A name alone is a name."""
    commands = [code for code in CODE.findall(page.read_text()) if code.startswith("opsconsole ")]
    known = commands_of(build_parser())
    for command in commands:
        words = shlex.split(command.partition(" > ")[0].replace("[", "").replace("]", "").replace("…", "x"))[1:]
        if words[0] != "COMMAND" and (len(words) > 1 or words[0] not in known):
            build_parser().parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", ["README.md", "docs/inventory.md"])
def test_inventories_in_the_text_are_good(page: str, tmp_path: Path) -> None:
    for i, text in enumerate(re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)):
        file = tmp_path / f"{i}.yaml"
        file.write_text(text)
        inventory.read_inventory(str(file))


def test_the_example_of_the_readme_happens_as_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text()
    assert main(["plan", "--json", str(ROOT / "docs/examples/three-teams.yaml")]) == 0
    report = json.loads(capsys.readouterr().out)
    told = dict(re.findall(r"^\| `([\w-]+)` of \w+ \| (\w+)", text, re.MULTILINE))
    kinds = {d["workload"]: d["kind"] for d in report["decisions"]}
    assert told == {"olmo-7b": "waits", "resnet": "is", "clip": "runs", "parser": "waits", "sweep": "waits"}
    assert kinds == {"olmo-7b": "hold", "resnet": "preempt", "parser": "hold", "sweep": "hold"}
    assert all(f"{row['balance']:.2f}" in text for row in report["order"])
    (until,) = [d["until"] for d in report["decisions"] if d["until"]]
    assert until == "2026-11-30T13:30:00Z" and "13:30" in text


def test_the_keys_of_json_are_those_that_are_documented(tmp_path: Path) -> None:
    """What scripts rely on; the first code span of a row of docs/cli.md names them all."""
    cluster = Cluster(hosts={"h1": 8})
    cluster.running("done")
    cluster.finish("done")
    cluster.running("runs")
    cluster.submit("waits")
    command_line = told(tmp_path, cluster)
    rows = re.findall(
        r"^\| `([\w-]+)[^`]*` \| list of `([^`]+)`(?:; finished ones also `([^`]+)`)? \|", TABLE, re.MULTILINE
    )
    for command, keys, more in rows:
        listed = command_line.json(command, *(["--all"] if more else []))
        assert (command, set(listed[-1])) == (command, {*keys.split(), *more.split()})
    assert [command for command, _, _ in rows] == ["queue", "hosts", "budgets", "runs"]
    assert set(command_line.json("explain", "waits")) == {"id", "kind", "lines", "figures"}
    drain = command_line.json("drain", "h1", "--reason", "x", "--dry-run")
    assert set(drain) == {"action", "targets", "rows", "effect", "guarantees_broken", "lost_gpu_h"}


def test_the_keys_of_the_readme_are_bound() -> None:
    keys = (ROOT / "README.md").read_text().partition("## Keys")[2].partition("The console starts")[0]
    told = {letter for code in CODE.findall(keys) for letter in code}
    bound = {shown_key(key) for action in ACTIONS for key in action.keys}
    assert told and told <= bound
