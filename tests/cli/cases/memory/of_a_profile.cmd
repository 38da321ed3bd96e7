memory --folded - <<END
{"device_traces": [[{"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": [{"filename": "none", "line": 0, "name": "train"}], "category": "activation"}]], "segments": [{"device": 0, "address": 4096, "total_size": 1024, "stream": 0, "blocks": [{"size": 512, "state": "active_allocated", "requested_size": 500, "frames": [{"filename": "none", "line": 0, "name": "train"}]}, {"size": 512, "state": "inactive"}]}]}
END
