"""Writes an ensemble of one step for each exported model, and the target file that puts it in the model's roles.

python triton_ensembles.py DIR     # what `oip-conformance models export --format triton DIR` wrote
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

PREFIX = "ensemble_"
STEP = 'ensemble_scheduling {{ step [ {{ model_name: "{name}" model_version: -1 {maps} }} ] }}\n'


def write_ensemble(model: Path) -> None:
    """Write the ensemble of a model beside it: the same signature, labels and batch size."""
    text = (model / "config.pbtxt").read_text(encoding="utf-8")
    kept = re.findall(r"^(?:max_batch_size|input|output).*$", text, re.MULTILINE)
    maps = [
        f'{kind}_map {{ key: "{name}" value: "{name}" }}'
        for line in kept
        for kind in re.findall(r"^(input|output) ", line)
        for name in re.findall(r'\bname: "([^"]+)"', line)
    ]
    folder = model.with_name(PREFIX + model.name)
    (folder / "1").mkdir(parents=True, exist_ok=True)
    for labels in model.glob("*.txt"):
        shutil.copy(labels, folder)
    head = f'name: "{folder.name}"\nplatform: "ensemble"\n'
    step = STEP.format(name=model.name, maps=" ".join(maps))
    (folder / "config.pbtxt").write_text("\n".join([head, *kept, step]), encoding="utf-8")


def main(exported: Path) -> None:
    """Write the ensembles and ensembles.toml."""
    for model in sorted((exported / "models").iterdir()):
        if not model.name.startswith(PREFIX):
            write_ensemble(model)
    text = (exported / "target.toml").read_text(encoding="utf-8")
    renamed = re.sub(r'^(\w+ = (?:\{ model = )?")', rf"\1{PREFIX}", text.partition("[roles]")[2], flags=re.MULTILINE)
    (exported / "ensembles.toml").write_text(f"[roles]{renamed}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
