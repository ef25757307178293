"""Answers the questions of queries/*.sql from the archive of this folder, by Spark: spark.py QUERIES."""

import json
import pathlib
import sys

from pyspark.sql import SparkSession

settings = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
for table in ("trials", "cells", "facts"):
    spark.read.option("mergeSchema", "true").parquet(table).createOrReplaceTempView(table)
answers = {}
for query in sorted(pathlib.Path(sys.argv[1]).glob("*.sql")):
    if query.stem != "tables":
        rows = spark.sql(query.read_text().rstrip().rstrip(";")).collect()
        answers[query.stem] = [list(row) for row in rows]
print(json.dumps(answers, default=lambda time: f"{time}+00:00"))
