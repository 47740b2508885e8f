"""What runs on GPU hosts: probe, runner, supervisor. Standard library and pynvml only, Python 3.8 to 3.13, one zipapp.

    agent        JSON lines on stdin and stdout (docs/agent-protocol.md); holds no state that matters
      ops          what each request does, on the run directories below the state directory
      worker       one child process that asks the driver, so that a hanging call hangs alone
    supervisor   one process per run; it alone starts, logs, stops and reaps a workload, and outlives the agent

All that must survive lies in files: `runs/TOKEN-HASH/{spec,state,stop}.json`, `burnt/`, `fence.json`. The supervisor
is the only writer of `state.json`; it holds a lock on `lock` for as long as it lives, so a reader never mistakes a
recycled pid.
"""

VERSION = "0.1.0"
