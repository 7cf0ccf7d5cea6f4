"""Every promise has a test that fails when it is broken: here each is broken on purpose.

The faults of a save (a sync dropped, a manifest forgotten) are in test_crash_points.py, those of whole trainings in
test_killed.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.faults import FAULTS

ROOT = Path(__file__).parents[2]
RESUMED = "tests/unit/test_loop.py::test_a_resumed_run_equals_one_never_stopped_bit_for_bit"
GUARDED = {
    "unkeyed_random_numbers": f"{RESUMED}[cosine-ema]",
    "optimizer_not_restored": f"{RESUMED}[cosine-ema]",
    "average_not_restored": f"{RESUMED}[cosine-ema]",
    "schedule_not_restored": f"{RESUMED}[plateau-ema]",
    "log_not_rewound": "tests/unit/test_loop.py::test_a_signal_finishes_the_step_saves_and_can_be_resumed_exactly",
    "checkpoints_not_verified": "tests/unit/test_checkpoint.py::"
    "test_every_flipped_byte_every_cut_and_every_swap_is_seen_by_file",
    "files_not_written_aside": "tests/unit/test_job.py::test_config_is_replaced_whole",
    "no_lock": "tests/unit/test_lock.py::test_a_lock_says_who_has_it_and_leaves_nothing",
    "losses_not_looked_at": "tests/unit/test_loop.py::"
    "test_a_spoilt_step_names_the_micro_batch_before_anything_is_changed",
    "zip_hides_a_missing_line": "tests/unit/test_corpus.py",
    "lines_end_anywhere": "tests/unit/test_corpus.py",
    "yaml_that_executes": "tests/unit/test_hostile_files.py",
    "shifts_not_looked_for": "tests/system/test_shifts.py::test_shifts_of_a_small_corpus",
    "masks_of_neighbours": "tests/unit/test_batch_invariance.py::test_alone_and_in_two_orders",
    "search_stops_too_soon": "tests/unit/test_search.py::test_stopping_early_gives_up_nothing",
    "terms_left_out": "tests/unit/test_constrained.py",
}
"""What has to notice each fault."""


def test_every_fault_has_its_test() -> None:
    assert GUARDED.keys() == FAULTS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("fault", GUARDED)
def test_the_test_fails(fault: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.system.faults", "-p", "no:cacheprovider"]
    environment = {**os.environ, "DRAGOMAN_FAULT": fault}
    done = subprocess.run(
        [*command, GUARDED[fault]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, f"{GUARDED[fault]} does not notice {fault}:\n{done.stdout[-3000:]}"
    assert "failed" in done.stdout
