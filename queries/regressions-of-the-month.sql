-- Which cells fell most in the newest month, against the campaign of the same name before? Only where the intervals do not overlap.
WITH runs AS (
    SELECT lab, machine, campaign, name, folder, year, month, received_fps, received_high_fps,
        lag(received_fps) OVER earlier AS earlier_fps,
        lag(received_low_fps) OVER earlier AS earlier_low_fps,
        lag(folder) OVER earlier AS earlier_folder
    FROM cells
    WHERE NOT tester_alone AND received_fps IS NOT NULL AND testbed <> 'simulated'
    WINDOW earlier AS (PARTITION BY lab, machine, campaign, name ORDER BY started)
)
SELECT lab, machine, name, received_fps / earlier_fps AS ratio, earlier_folder, folder
FROM runs
WHERE 12 * CAST(year AS INT) + CAST(month AS INT) = (SELECT max(12 * CAST(year AS INT) + CAST(month AS INT)) FROM cells) AND received_high_fps < earlier_low_fps
ORDER BY ratio, lab, machine, name
LIMIT 20;
