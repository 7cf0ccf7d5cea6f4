"""The environment as a toolkit's users have it: to be imported before Dragoman, which limits caches in its own.

Those limits (`dragoman/device.py`) suit Dragoman; another toolkit that inherited them would be measured with fewer
compiled kernels than PyTorch keeps by itself.
"""

import os
import sys

assert "dragoman.device" not in sys.modules, "too late: Dragoman has changed the environment"
ENVIRONMENT = dict(os.environ)
