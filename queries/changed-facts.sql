-- Between the last two campaigns of the same name in a lab, which facts changed?
WITH campaigns AS (SELECT DISTINCT lab, campaign, id, started FROM facts),
numbered AS (
    SELECT id, row_number() OVER (PARTITION BY lab, campaign ORDER BY started DESC, id) AS back FROM campaigns
),
old AS (SELECT f.* FROM facts f JOIN numbered n ON n.id = f.id WHERE n.back = 2),
new AS (SELECT f.* FROM facts f JOIN numbered n ON n.id = f.id WHERE n.back = 1),
pairs AS (SELECT DISTINCT n.lab, n.campaign FROM new n JOIN old o ON o.lab = n.lab AND o.campaign = n.campaign),
both_of AS (
    SELECT coalesce(n.lab, o.lab) AS lab, coalesce(n.campaign, o.campaign) AS campaign, coalesce(n.cell, o.cell) AS cell,
        coalesce(n.fact, o.fact) AS fact, o.value AS old_value, n.value AS new_value
    FROM old o
    FULL JOIN new n ON n.lab = o.lab AND n.campaign = o.campaign AND n.fact = o.fact AND coalesce(n.cell, 0) = coalesce(o.cell, 0)
)
SELECT b.lab, b.campaign, b.cell, b.fact, b.old_value, b.new_value
FROM both_of b
JOIN pairs p ON p.lab = b.lab AND p.campaign = b.campaign
WHERE coalesce(b.old_value, '') <> coalesce(b.new_value, '')
ORDER BY b.lab, b.campaign, b.cell, b.fact;
