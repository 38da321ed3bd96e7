check --json - <<END
[{"address": 100, "total_size": 8, "blocks": [{"size": 4, "state": "inactive"}]}]
END
