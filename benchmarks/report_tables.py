"""The technical report's Tables 3 to 6 beside scores computed from their printed components.

    python benchmarks/report_tables.py paper_tables_3_to_6.csv

The CSV has the columns `framework,task,t,alpha,beta,lambda,eta,S,gamma,ES`; an empty S means that
the score is not defined. Prints one JSON object per row, with each score as printed and computed
with p = 0 and p = 0.1, then one that counts the rows which agree within rounding.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from graphnet_datasets.scores import score_of_components

PENALTIES = (0.0, 0.1)
B = 0.1
HALF_UNIT = 0.0005
"""The tables print three decimals."""
ROUNDING = 3 * HALF_UNIT
"""How far a score may be off because its components were rounded as well."""


def compare_row(row: dict[str, str]) -> dict[str, object]:
    """Return a row of the tables with the scores that follow from its components."""
    alpha, beta, lambda_, eta = (float(row[name]) for name in ("alpha", "beta", "lambda", "eta"))
    compared: dict[str, object] = {
        "framework": row["framework"],
        "task": row["task"],
        "t": int(row["t"]),
    }
    for score, gamma in (("S", B), ("ES", float(row["gamma"]))):
        if row[score]:
            compared[score] = float(row[score])
            for p in PENALTIES:
                value = score_of_components(alpha, beta, lambda_, eta, gamma=gamma, p=p)
                compared[f"{score} at p = {p:g}"] = round(value, 4)
    return compared


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"Usage: {sys.argv[0]} paper_tables_3_to_6.csv")
    with Path(sys.argv[1]).open(encoding="utf-8") as file:
        rows = [compare_row(row) for row in csv.DictReader(file)]
    for row in rows:
        print(json.dumps(row))
    counts = {}
    for score in ("S", "ES"):
        printed = [row for row in rows if score in row]
        counts[f"num_{score}"] = len(printed)
        for p in PENALTIES:
            name = f"{score} at p = {p:g}"
            agreeing = [abs(row[score] - row[name]) <= ROUNDING for row in printed]  # type: ignore[operator]
            counts[f"num_equal {name}"] = sum(agreeing)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
