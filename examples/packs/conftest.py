"""Lets the tests of the packs run without pip: each pack is installed for the process that runs them."""

import atexit
import tempfile
from pathlib import Path

from tests.support.installed_packs import extend_path, install_examples, list_examples

_PLACE = tempfile.TemporaryDirectory(prefix="oip-packs-")
atexit.register(_PLACE.cleanup)
extend_path(install_examples(Path(_PLACE.name), list_examples()))
