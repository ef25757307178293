-- Where was the tester alone hardly faster than with the DUT, so that the rate may be the tester's and not the DUT's?
SELECT lab, machine, campaign, folder, name, tester_ratio, limited_by
FROM cells
WHERE tester_ratio > 0.9
ORDER BY tester_ratio DESC, folder, cell;
