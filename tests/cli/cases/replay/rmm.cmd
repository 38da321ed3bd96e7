replay "$data/logs/rmm.csv" | sed "s,^.*/rmm,rmm,; s/[0-9.]* ms\$/T ms/"
