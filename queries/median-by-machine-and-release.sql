-- How much does each machine forward with each kernel: the median over its campaigns, for each cell?
SELECT machine, name, kernel, count(*) AS campaigns, median(received_fps) AS received_fps
FROM cells
WHERE NOT tester_alone AND received_fps IS NOT NULL AND testbed <> 'simulated'
GROUP BY machine, name, kernel
ORDER BY machine, name, kernel;
