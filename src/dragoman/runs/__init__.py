"""The run directory: where a training keeps everything, and how it survives being killed."""
