"""The reference server with other names for models and tensors, and versions in its paths: `python renamed_server.py`.

Every model is called `prod-ROLE`, an input `x.NAME`, an output `y.NAME`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reference_server import __main__ as program
from reference_server import models
from reference_server.models import Model
from reference_server.tensors import Tensor

IN, OUT, MODEL = "x.", "y.", "prod-"


@dataclass(frozen=True)
class RenamedModel(Model):
    """A model that calls its tensors otherwise."""

    original: Model

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Run the original and rename what it returns."""
        found = self.original.run({name.removeprefix(IN): tensor for name, tensor in inputs.items()})
        return {OUT + name: tensor for name, tensor in found.items()}


def rename_model(model: Model) -> Model:
    """Return a model with its versions under other names."""
    versions: dict[str, Model] = {}
    for version in model.versions.values():
        _rename_version(version, versions)
    return versions[model.version]


def _rename_version(model: Model, versions: dict[str, Model]) -> RenamedModel:
    return RenamedModel(
        name=MODEL + model.name,
        inputs=tuple(replace(spec, name=IN + spec.name) for spec in model.inputs),
        outputs=tuple(replace(spec, name=OUT + spec.name) for spec in model.outputs),
        compute=model.compute,
        batching=model.batching,
        labels={OUT + name: labels for name, labels in model.labels.items()},
        table=model.table,
        version=model.version,
        versions=versions,
        original=model,
    )


if __name__ == "__main__":
    served = {model.name: model for model in map(rename_model, models.load().values())}
    models.load = lambda *_: dict(served)
    program.main()
