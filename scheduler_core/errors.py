"""The core's own exceptions: for mistakes of the caller. A refusal is a value, not an exception."""


class SchedulerCoreError(Exception):
    """Something that the caller should have made impossible: unknown ids, time running backwards."""


class UnknownIdError(SchedulerCoreError):
    """A budget, workload, run or host that the state does not hold."""


class InvariantBroken(SchedulerCoreError):
    """What must always hold does not: the message names the invariant and the ids."""
