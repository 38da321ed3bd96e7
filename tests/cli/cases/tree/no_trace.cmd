tree - <<END
[{"device": 0, "address": 0, "total_size": 512, "blocks": [{"size": 512, "requested_size": 500, "address": 0, "state": "active_allocated"}]}]
END
