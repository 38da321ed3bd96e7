trace - <<END
[{"address": 1, "total_size": 2, "blocks": [{"size": 2, "state": "inactive"}]}]
END
