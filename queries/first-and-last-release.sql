-- From which kernel to which was a cell measured, and what became of its rate in between?
WITH runs AS (
    SELECT lab, machine, campaign, name, kernel, received_fps,
        row_number() OVER (PARTITION BY lab, machine, campaign, name ORDER BY started) AS number,
        row_number() OVER (PARTITION BY lab, machine, campaign, name ORDER BY started DESC) AS back
    FROM cells
    WHERE NOT tester_alone AND received_fps IS NOT NULL AND testbed <> 'simulated'
)
SELECT a.lab, a.machine, a.name, a.kernel AS first_kernel, z.kernel AS last_kernel, z.received_fps / a.received_fps AS ratio
FROM runs a
JOIN runs z ON z.lab = a.lab AND z.machine = a.machine AND z.campaign = a.campaign AND z.name = a.name AND z.back = 1
WHERE a.number = 1 AND z.number > 1
ORDER BY a.lab, a.machine, a.name;
