"""Answers the questions of queries/*.sql from the archive of this folder, by DuckDB: ask.py QUERIES LINERATE.

Asks again when LINERATE has compacted the archive. Polars counts the trials of each lab, too.
"""

import json
import pathlib
import subprocess
import sys

import duckdb
import polars

queries, linerate = pathlib.Path(sys.argv[1]), sys.argv[2]
duckdb.sql((queries / "tables.sql").read_text())


def answers():
    found = {
        query.stem: duckdb.sql(query.read_text()).fetchall()
        for query in sorted(queries.glob("*.sql"))
        if query.stem != "tables"
    }
    trials = polars.scan_parquet("trials/**/*.parquet", hive_partitioning=True)
    labs = trials.group_by("lab", "year", "month").agg(polars.len()).sort("lab", "year", "month")
    return json.loads(json.dumps({**found, "polars": labs.collect().rows()}, default=str))


before = answers()
subprocess.run([linerate, "archive", "compact", "."], check=True, stdout=subprocess.DEVNULL)
after = answers()
print(json.dumps({"before": before, "after": after}))
