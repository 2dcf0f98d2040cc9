"""The adapter that docs/clients.md walks through: it is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "clients.md"


def test_the_adapter_of_the_docs_is_judged(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "adapter.py").write_text(code, encoding="utf-8")
    rows = "client.reads-every-datatype or client.reads-classes or client.keeps-answers-apart"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", f"--client-adapter={sys.executable} adapter.py", "-k", rows],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout
    assert "tritonclient.http" in run.stdout
    assert run.stdout.rstrip().endswith(" rows, none failed")
    assert int(re.findall(r"(\d+) passed", run.stdout)[0]) > 30
