# The types of what conformance/__init__.py imports when it is asked for.
from conformance.api import JudgeError as JudgeError
from conformance.api import Report as Report
from conformance.api import UnmetRequirement as UnmetRequirement
from conformance.api import UnmetRow as UnmetRow
from conformance.api import judge as judge
from conformance.spec.version import __version__ as __version__
