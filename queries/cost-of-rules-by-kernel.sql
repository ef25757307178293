-- The cost of a rule set with each kernel: the share of the rate, and nanoseconds of a frame, against the baseline with the same frames
SELECT c.machine, c.variant, c.frame, c.kernel, count(*) AS cells, median(1 - c.baseline_ratio) AS cost,
    median(1e9 / c.received_fps - 1e9 / b.received_fps) AS more_ns
FROM cells c
JOIN cells b ON b.id = c.id AND b.cell = c.baseline_cell
WHERE b.variant <> c.variant AND b.frame = c.frame AND b.family = c.family AND c.received_fps > 0 AND b.received_fps > 0
    AND c.testbed <> 'simulated'
GROUP BY c.machine, c.variant, c.frame, c.kernel
ORDER BY c.machine, c.variant, c.frame, c.kernel;
