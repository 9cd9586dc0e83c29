#!/usr/bin/env python3
"""Arguments come as one JSON object on standard input; the answer is what is printed.

It runs in the session's folder. What goes wrong is said on standard error, with an exit code
that is not 0: the model reads it and can do better.
"""

import csv
import json
import sys

arguments = json.load(sys.stdin)
column = arguments["column"]

try:
    with open(arguments["file"], newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        if column not in (rows.fieldnames or []):
            sys.exit(f"there is no column {column!r}; there are {', '.join(rows.fieldnames or [])}")
        values, others = [], 0
        for row in rows:
            try:
                values.append(float(row[column]))
            except (TypeError, ValueError):
                others += 1
except OSError as error:
    sys.exit(f"{arguments['file']}: {error.strerror}")

if not values:
    sys.exit(f"the column {column!r} holds no numbers")
print(f"{len(values)} numbers, {others} other values")
print(f"least {min(values):g}, mean {sum(values) / len(values):g}, greatest {max(values):g}")
