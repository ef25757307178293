-- How noisy is each lab: the variation of the rate within a cell (standard deviation by mean), in the middle and at its worst?
SELECT lab, machine, count(*) AS cells, median(variation) AS variation, max(variation) AS worst
FROM cells
WHERE valid_trials > 2 AND variation IS NOT NULL AND testbed <> 'simulated'
GROUP BY lab, machine
ORDER BY variation DESC, lab, machine;
