# SPDX-License-Identifier: MIT
"""tarn.torch.collect: what a rank writes, and when."""

import json
import os
import tempfile
import unittest

from torch_process import HERE, Case

TINY = os.path.join(HERE, "..", "data", "snapshots", "tiny.pickle.gz")
PREPARE = f"""
import gzip, os, pickle, signal, socket, warnings
from tarn.torch.collect import Collector
recorded = pickle.loads(gzip.open({TINY!r}).read())
torch.cuda.memory._snapshot = lambda *_: recorded
socket.gethostname = lambda: "n12.cluster"
"""


def summary(path):
    """The first rank of a summary."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return next(line["rank"] for line in lines if "rank" in line)


@unittest.skipUnless(os.environ.get("STANDIN_PLUGGABLE"), "no C++ compiler made the stand-in")
class Collect(Case):
    settings = {"RANK": "3"}

    def collected(self, script, **more):
        with tempfile.TemporaryDirectory() as folder:
            dumps = os.path.join(folder, "a", "dumps")
            self.passes(PREPARE + f"folder = {dumps!r}\n" + script, **more)
            found = {}
            for name in sorted(os.listdir(dumps)):
                path = os.path.join(dumps, name)
                found[name] = summary(path) if name.endswith(".tsum") else os.path.getsize(path)
            return found

    def test_after_steps_and_now(self):
        found = self.collected("""
collector = Collector(folder, layout={"pp": 1}, steps=[2, 5], every=4)
paths = [collector.step() for _ in range(9)]
assert [i + 1 for i, path in enumerate(paths) if path] == [2, 4, 5, 8], paths
assert collector.write(reason="done").endswith("pp=1,rank=3,reason=done,step=9.tsum")
""")
        self.assertEqual(
            list(found),
            ["host=n12.cluster,pp=1,rank=3,reason=done,step=9.tsum"]
            + [f"host=n12.cluster,pp=1,rank=3,step={step}.tsum" for step in (2, 4, 5, 8)],
        )
        labels = found["host=n12.cluster,pp=1,rank=3,step=4.tsum"]["labels"]
        self.assertEqual(
            {key: labels[key] for key in ("rank", "host", "pp", "step", "device")},
            {"rank": "3", "host": "n12.cluster", "pp": "1", "step": "4", "device": "0"},
        )
        self.assertEqual(labels["file"], "host=n12.cluster,pp=1,rank=3,step=4")

    def test_at_a_signal(self):
        found = self.collected("""
collector = Collector(folder)
collector.on_signal(signal.SIGUSR2)
os.kill(os.getpid(), signal.SIGUSR2)
""")
        self.assertEqual(list(found), ["host=n12.cluster,rank=3,step=0.tsum"])

    def test_snapshots_and_their_packing(self):
        found = self.collected("""
collector = Collector(folder, summaries=False, suffix=".pickle.gz")
collector.write()
torch.distributed = type("", (), {
    "is_available": lambda: True, "is_initialized": lambda: True, "get_rank": lambda: 7})
mesh = type(
    "",
    (),
    {"mesh_dim_names": ("dp", "tp"), "get_local_rank": lambda self, name: len(name)},
)()
Collector(folder, mesh=mesh, summaries=False).write()
""")
        self.assertEqual(
            list(found),
            ["dp=2,host=n12.cluster,rank=7,step=0,tp=2.pickle",
             "host=n12.cluster,rank=3,step=0.pickle.gz"],
        )
        self.assertTrue(all(found.values()))

    def test_what_is_refused(self):
        self.collected("""
text = fails(tarn.Error, Collector, folder, {"bad key": 1})
assert "'bad key' is no label" in text, text
assert not os.path.exists(folder)
collector = Collector(folder, layout={"name": "a/b,c=d"})
assert collector.labels["name"] == "a_b_c_d"
recorded["device_traces"] = [[]]
assert "no trace" in fails(tarn.Error, collector.write)
assert os.listdir(folder) == []
collector.on_signal(signal.SIGUSR2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    os.kill(os.getpid(), signal.SIGUSR2)
assert len(caught) == 1 and "nothing was collected" in str(caught[0].message)
""")

    def test_when_memory_runs_out(self):
        found = self.collected("""
observers = []
torch._C._cuda_attach_out_of_memory_observer = observers.append
torch.cuda._lazy_call = lambda call: call()
collector = Collector(folder)
collector.at_oom()
collector.at_oom() # again is fine
assert len(observers) == 1
collector.step()
for _ in range(6):
    observers[0](0, 1 << 30, 1 << 30, 0) # device, requested, total, free
""")
        self.assertEqual(
            list(found), [f"host=n12.cluster,oom={i},rank=3,step=1.tsum" for i in range(1, 5)]
        )


if __name__ == "__main__":
    unittest.main()
