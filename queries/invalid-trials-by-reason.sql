-- Which checks of the audit keep trials out of the results, and in which lab?
SELECT lab, split_part(invalid_because, ':', 1) AS failed_check, count(*) AS trials, count(DISTINCT id) AS campaigns
FROM trials
WHERE NOT valid
GROUP BY lab, split_part(invalid_because, ':', 1)
ORDER BY trials DESC, lab, failed_check;
