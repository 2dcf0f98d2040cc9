"""Convert three models of scikit-learn for OMLE: `python models.py DIR`.

iris has classes, diabetes is a regression, and flowers has named columns and labels that are texts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import omle_convert
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

NAMES = np.array(["setosa", "versicolor", "virginica"])


def main(folder: Path) -> None:
    """Fit the models, and write them into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    samples, classes = load_iris(return_X_y=True)
    table = load_iris(as_frame=True).data.rename(columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_"))
    patients, values = load_diabetes(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=10, random_state=0)
    iris = make_pipeline(StandardScaler(), LogisticRegression()).fit(samples, classes)
    for name, model, inputs in (
        ("iris", iris, samples),
        ("diabetes", LinearRegression().fit(patients, values), patients),
        ("flowers", forest.fit(table, NAMES[classes]), table),
    ):
        omle_convert.export_omle(model, str(folder / f"{name}.omle"), X=inputs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
