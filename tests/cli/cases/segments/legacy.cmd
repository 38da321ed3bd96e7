segments --folded - <<END
[{"address": 4096, "total_size": 2048, "blocks": [{"size": 2048, "state": "active_allocated", "history": [{"addr": 4096, "real_size": 100, "frames": [{"name": "inner", "filename": "/a/x.py", "line": 7}]}, {"addr": 4096, "real_size": 50}]}]}]
END
