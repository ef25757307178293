-- How do frames/s and Gbit/s on the wire (with preamble and gap) depend on the frame length?
SELECT lab, machine, variant, family, frame_bytes, count(*) AS cells, median(received_fps) AS received_fps,
    median(received_fps * (frame_bytes + 20) * 8 / 1e9) AS gbit_per_s
FROM cells
WHERE NOT tester_alone AND received_fps IS NOT NULL AND frame_bytes IS NOT NULL AND testbed <> 'simulated'
GROUP BY lab, machine, variant, family, frame_bytes
ORDER BY lab, machine, variant, family, frame_bytes;
