"""Programs around trainings: benchmark, demo, sweep, more pairs, smaller models, averages of runs."""
