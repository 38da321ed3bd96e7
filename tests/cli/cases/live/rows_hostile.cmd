live --by function --csv - <<'END' && "$tarn" version >/dev/null
{"segments": [], "device_traces": [[
{"action": "alloc", "addr": 1, "size": 9, "stream": 0, "frames": [{"name": "=1+1", "filename": "f", "line": 1}]},
{"action": "alloc", "addr": 2, "size": 8, "stream": 0, "frames": [{"name": "a\u001b[31m\u202e\"b\",\u00e4\n\u20ac\ud83d\ude00", "filename": "f", "line": 1}]},
{"action": "alloc", "addr": 3, "size": 7, "stream": 0, "frames": [{"name": "@x", "filename": "f", "line": 1}]}]]}
END
