"""Programs around a training: benchmark, demo, more pairs, averages of runs."""
