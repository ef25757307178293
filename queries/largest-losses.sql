-- Which cells lose the largest share of the frames that were sent, and which share does the DUT itself drop, as far as it counts?
SELECT lab, machine, campaign, folder, name, offered_fps, received_fps, loss_ratio, dropped_ratio
FROM cells
WHERE loss_ratio > 0 AND NOT tester_alone AND testbed <> 'simulated'
ORDER BY loss_ratio DESC, folder, cell
LIMIT 20;
