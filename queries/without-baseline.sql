-- Which campaigns have no cell that is compared with a baseline, and which have no rate of the tester alone?
SELECT lab, campaign, folder, started, count(*) AS cells, count(baseline_ratio) AS compared, count(tester_ratio) AS held_against_tester
FROM cells
GROUP BY lab, campaign, folder, started, id
HAVING count(baseline_ratio) = 0 OR count(tester_ratio) = 0
ORDER BY lab, started, folder;
