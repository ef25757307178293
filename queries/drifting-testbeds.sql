-- Which testbed drifts: how far is the tester's own rate apart between campaigns, and does it rise or fall with time (trend near 1 or -1)?
WITH alone AS (
    SELECT lab, machine, campaign, name, received_fps,
        row_number() OVER (PARTITION BY lab, machine, campaign, name ORDER BY started) AS number
    FROM cells
    WHERE tester_alone AND received_fps IS NOT NULL AND testbed <> 'simulated'
)
SELECT lab, machine, name, count(*) AS campaigns, max(received_fps) / min(received_fps) - 1 AS apart,
    CASE WHEN max(received_fps) > min(received_fps) THEN corr(received_fps, number) END AS trend
FROM alone
GROUP BY lab, machine, campaign, name
HAVING count(*) > 1
ORDER BY apart DESC, lab, machine, name;
