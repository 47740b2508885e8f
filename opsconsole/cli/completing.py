"""Shell completion: a few lines for each shell that ask `opsconsole complete` for what may stand next.

So one program knows what there is: commands, options, hosts, budgets, workloads.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, zip_longest

from opsconsole.cli.parser import build_parser
from opsconsole.cli.wiring import Place
from opsconsole.errors import OpsConsoleError
from scheduler_core.state import ClusterState
from scheduler_core.workload import WorkloadPhase

FILES = "\x1ffiles"  # the shell knows them best
SCRIPTS = {
    "bash": """\
_opsconsole() {
    local IFS=$'\\n'
    COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    if [ "${COMPREPLY[0]}" = $'\\x1ffiles' ]; then
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
    fi
}
complete -o nosort -F _opsconsole opsconsole""",
    "zsh": """\
#compdef opsconsole
_opsconsole() {
    local -a found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ "$found[1]" = $'\\x1ffiles' ]]; then _files; else compadd -a found; fi
}
if [ "$funcstack[1]" = _opsconsole ]; then _opsconsole "$@"; else compdef _opsconsole opsconsole; fi""",
    "fish": """\
function __opsconsole
    set -l typed (commandline -opc)
    set -l last (commandline -ct)
    set -l found ($typed[1] complete -- $typed[2..] "$last" 2>/dev/null)
    if test "$found[1]" = \\x1ffiles
        __fish_complete_path "$last"
    else if count $found >/dev/null
        printf '%s\\n' $found
    end
end
complete -c opsconsole -f -a '(__opsconsole)'""",
}


def completion(args: argparse.Namespace) -> int:
    """The lines of a shell; where to put them is in docs/cli.md."""
    print(SCRIPTS[args.shell])
    return 0


def complete(args: argparse.Namespace) -> int:
    """What may stand in place of the last word."""
    *before, last = args.words or [""]
    for word in candidates(before, last):
        print(word)
    return 0


def candidates(before: Sequence[str], last: str) -> list[str]:
    """Values of the option before; or what the command is about, and its options once a dash is typed."""
    if "--" in before:
        return [FILES]  # a workload's own command
    parser, given = _parser_of(before)
    options = {name: action for action in parser._actions for name in action.option_strings}
    option = options.get(before[-1]) if before else None
    if option is not None and option.nargs != 0:
        found = _values(option, given)
    elif last.startswith("-"):
        found = [name for name in options if name.startswith("--")]
    else:
        found = [word for action in _positionals(parser, options, before) for word in _values(action, given)]
    return [word for word in found if word == FILES or word.startswith(last)]


def _positionals(
    parser: argparse.ArgumentParser, options: dict[str, argparse.Action], before: Sequence[str]
) -> list[argparse.Action]:
    """What stands next, by how many words stand before it; the last one may be many."""
    listed = [action for action in parser._actions if not action.option_strings]
    name = parser.prog.split()[-1]
    typed = before[before.index(name) + 1 :] if name in before else ()
    taken = {word for word, value in pairwise(typed) if word in options and options[word].nargs != 0 and value}
    plain = sum(not word.startswith("-") for word in typed) - len(taken)
    return listed[min(max(plain, 0), len(listed) - 1) :][:1]


def _parser_of(words: Sequence[str]) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """The parser of the command that was typed, and which cluster it is about."""
    parser: argparse.ArgumentParser = build_parser()
    given = argparse.Namespace(inventory=None, cluster=None)
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for word, following in zip_longest(words, words[1:]):
        if word in commands.choices and parser is not commands.choices[word]:
            parser = commands.choices[word]
        elif word in ("--inventory", "--cluster"):
            setattr(given, word[2:], following)
    return parser, given


def _values(action: argparse.Action, given: argparse.Namespace) -> list[str]:
    """What an option or a positional takes; nothing where that is the person's own."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    if action.metavar == "FILE":
        return [FILES]
    known = KNOWN.get(str(action.metavar))
    if known is None:
        return []
    try:
        return list(known(Place.of(given).open_store(read_only=True).recover().engine.state))
    except OpsConsoleError:
        return []


def _workloads(state: ClusterState) -> Iterable[str]:
    """The live ones."""
    return (wid for wid, record in state.workloads.items() if record.phase is not WorkloadPhase.ENDED)


KNOWN: dict[str, Callable[[ClusterState], Iterable[str]]] = {
    "HOST": lambda state: state.hosts,
    "PATH": lambda state: (state.budgets.paths[leaf] for leaf in state.budgets.leaves),
    "BUDGET": lambda state: state.budgets.by_path,
    "WORKLOAD": _workloads,
    "RUN": lambda state: state.workloads,
    "ID": lambda state: (*_workloads(state), *state.budgets.by_path, *state.hosts),
}
