"""The knobs of the scheduling policy with their defaults (rule numbers behind each)."""

from dataclasses import dataclass
from typing import Literal

from scheduler_core.units import DAY, HOUR, MINUTE, PPM, SECOND


@dataclass(frozen=True, slots=True)
class Policy:
    """Validated where it is read (opsconsole.config); spans in ms, fractions in parts per million."""

    lookback_ms: int = 7 * DAY  # 3
    count_commitments: bool = True  # 7
    resources: Literal["gpus"] = "gpus"  # 9: drf follows
    min_runtime_min_ms: int = 0  # 10
    min_runtime_max_ms: int = 8 * HOUR  # 10
    start_timeout_ms: int = 10 * MINUTE  # 11
    checkpoint_grace_ms: int = 5 * MINUTE  # 13
    stop_grace_ms: int = 30 * SECOND  # 13
    stop_deadline_ms: int = 10 * MINUTE  # 13
    max_retries: int = 3  # 14
    retry_delay_ms: int = 1 * MINUTE  # 14: doubles with every retry
    pass_interval_ms: int = 5 * SECOND  # 15
    pack: Literal["aligned", "tight"] = "aligned"  # 16
    claim_horizon_ms: int = 30 * MINUTE  # 17
    preemption_margin_ppm: int = PPM // 20  # 17, 18
    max_blast_ppm: int = 2 * PPM  # 18: times the GPUs of the workload that needs them
    blast_patience_ms: int = 15 * MINUTE  # 18
    max_reservations: int = 4  # 21
    free_memory_mib: int = 1024  # 26
    lost_after_ms: int = 5 * MINUTE  # 27
    suspect_failures: int = 3  # 28: on one host, of at least suspect_owners
    suspect_owners: int = 2  # 28
    suspect_hosts: int = 3  # 28: hosts on which one workload failed
    suspect_within_ms: int = 60 * SECOND  # 28: after the start
    suspect_window_ms: int = 30 * MINUTE  # 28
    breaker_hosts: int = 2  # 29: per hour, or the fraction below if more
    breaker_hosts_ppm: int = PPM // 20  # 29
    serving_floor: int = 0  # 29: hosts that the machine leaves serving, or the fraction below if more
    serving_floor_ppm: int = 0  # 29
    breaker_gpus: int = 64  # 29: preempted per 30 min, or the fraction below if more
    breaker_gpus_ppm: int = PPM // 2  # 29
