-- The three tables of an archive, for DuckDB in the archive's folder. Columns that a later linerate adds are null in older files.
CREATE VIEW trials AS SELECT * FROM read_parquet('trials/**/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE VIEW cells AS SELECT * FROM read_parquet('cells/**/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE VIEW facts AS SELECT * FROM read_parquet('facts/**/*.parquet', hive_partitioning = true, union_by_name = true);
