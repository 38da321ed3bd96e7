# SPDX-License-Identifier: MIT
"""record.py CASE SETTINGS FRACTION FOLDER: runs one workload with PyTorch's own allocator and
writes what it recorded: NAME.pickle.gz, NAME.json (settings, counters) and what PyTorch's
_memory_viz prints of it. `record.py list` prints the cases, a line each: CASE SETTINGS FRACTION.

The same case asks for the same memory under all settings, so that what a replay predicts can be
held against what was measured (check.py).
"""

import contextlib
import gzip
import io
import json
import os
import pickle
import random
import re
import sys

# What every deterministic workload runs under.
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "large_segment_size_mb:64",
    "expandable_segments:True,max_split_size_mb:128",
)
DETERMINISTIC = ("lstm", "mobilenet", "vit", "bert", "generate", "unet", "lifetimes", "flushing")
ALONE = (
    ("caught", "", 0.05),
    ("caught", "expandable_segments:True", 0.05),
    ("caught", "max_split_size_mb:64,garbage_collection_threshold:0.5", 0.05),
    ("lifetimes", "garbage_collection_threshold:0.3", 0.2),
    ("lifetimes", "max_split_size_mb:200,garbage_collection_threshold:0.7", 0.1),
    ("side_streams", "", 1),
    ("side_streams", "expandable_segments:True", 1),
    ("graphs", "", 1),
    ("graphs", "expandable_segments:True", 1),
    ("ring", "", 1),
    ("ring", "expandable_segments:True", 1),
    ("late", "", 1),
    ("late", "expandable_segments:True", 1),
    ("state_only", "", 1),
    ("no_context", "", 1),
    ("native_stacks", "", 1),
    ("annotated", "", 1),
    ("pinned", "", 1),
)


def cases():
    return [(case, settings, 1) for case in DETERMINISTIC for settings in SETTINGS] + list(ALONE)


if __name__ == "__main__" and sys.argv[1:2] == ["list"]:
    for case in cases():
        print(*(part if part != "" else "-" for part in case))
    sys.exit(0)

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "" if sys.argv[2] == "-" else sys.argv[2]

import torch  # noqa: E402  after its settings
from torch import nn  # noqa: E402

MIB = 1 << 20


def record(**options):
    torch.cuda.memory._record_memory_history(**{"stacks": "python", **options})


def train(model, batches, loss_of, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4)
    for batch in batches:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


class Speller(nn.Module):
    def __init__(self, words=5000, size=512):
        super().__init__()
        self.words = nn.Embedding(words, size)
        self.rows = nn.LSTM(size, size, num_layers=2, batch_first=True)
        self.out = nn.Linear(size, words)

    def forward(self, text):
        return self.out(self.rows(self.words(text))[0])


def speller_batches(rng, count):
    for _ in range(count):
        yield torch.randint(0, 5000, (rng.choice((8, 16, 24)), rng.randint(20, 200))).cuda()


def next_word(model, text):
    out = model(text[:, :-1])
    return nn.functional.cross_entropy(out.flatten(0, 1), text[:, 1:].flatten())


def lstm(rng, steps=12):
    train(Speller().cuda(), speller_batches(rng, steps), next_word)


def classify(model, batch):
    wanted = torch.zeros(len(batch), dtype=torch.long).cuda()
    return nn.functional.cross_entropy(model(batch), wanted)


def mobilenet(rng):
    from torchvision.models import mobilenet_v2

    sizes = [(rng.randint(4, 40), rng.choice((96, 128, 160, 224, 256))) for _ in range(6)]
    train(mobilenet_v2().cuda(), (torch.rand(n, 3, s, s).cuda() for n, s in sizes), classify)


def vit(rng):
    from torchvision.models import vit_b_16

    model = vit_b_16().cuda()
    train(model, (torch.rand(rng.randint(2, 32), 3, 224, 224).cuda() for _ in range(5)), classify,
          torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))


def bert(rng):
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(BertConfig(num_hidden_layers=6, attn_implementation="eager")).cuda()
    texts = (torch.randint(0, 30000, (rng.randint(1, 12), rng.randint(32, 512))).cuda()
             for _ in range(5))
    train(model, texts, lambda m, text: m(text, labels=text).loss)


def generate(rng):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=8)).cuda().eval()
    with torch.inference_mode():
        for _ in range(3):
            text = torch.randint(0, 50000, (rng.randint(1, 6), rng.randint(8, 300))).cuda()
            past = None
            for _ in range(rng.randint(30, 80)):
                out = model(text, past_key_values=past, use_cache=True)
                past = out.past_key_values
                text = out.logits[:, -1:].argmax(-1)


class Unet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        widths = [3] + [width << i for i in range(4)]
        self.down = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(
            nn.Conv2d((width << i) + (width << (i - 1)), width << (i - 1), 3, padding=1)
            for i in (3, 2, 1))
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, picture):
        kept = []
        for layer in self.down:
            picture = nn.functional.relu(layer(picture))
            kept.append(picture)
            picture = nn.functional.max_pool2d(picture, 2)
        picture = kept.pop()
        for layer in self.up:
            picture = nn.functional.interpolate(picture, scale_factor=2)
            picture = nn.functional.relu(layer(torch.cat((picture, kept.pop()), 1)))
        return self.out(picture)


def unet(rng):
    sizes = [(rng.randint(1, 6), 64 * rng.randint(1, 6)) for _ in range(8)]
    train(Unet().cuda(), (torch.rand(n, 3, s, s).cuda() for n, s in sizes),
          lambda m, picture: (m(picture) - picture).square().mean())


def some_bytes(rng):
    return int(2 ** rng.uniform(0, 29.3))


def lifetimes(rng, count=6000):
    """Random sizes that live for random times."""
    live = []
    used = 0
    for _ in range(count):
        if live and (rng.random() < 0.48 or used > 6 << 30):
            used -= live.pop(rng.randrange(len(live))).nbytes
        else:
            live.append(torch.empty(some_bytes(rng), dtype=torch.uint8, device="cuda"))
            used += live[-1].nbytes


def flushing(rng):
    model = Speller().cuda()
    for _ in range(3):
        train(model, speller_batches(rng, 3), next_word)
        torch.cuda.empty_cache()
        lifetimes(rng, 300)


def caught(rng):
    """Runs out of memory again and again, and goes on."""
    live = []
    for _ in range(1500):
        try:
            live.append(torch.empty(some_bytes(rng) * 2, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            del live[:: rng.choice((2, 3))]
        if live and rng.random() < 0.4:
            live.pop(rng.randrange(len(live)))


def side_streams(rng):
    streams = [torch.cuda.Stream() for _ in range(3)]
    work = torch.rand(1500, 1500, device="cuda")
    live = []
    for i in range(600):
        stream = rng.choice(streams)
        with torch.cuda.stream(stream):
            tensor = torch.empty(some_bytes(rng) // 4 + 1, dtype=torch.uint8, device="cuda")
            if i % 5 == 0:
                work @ work
        if rng.random() < 0.5:
            tensor.record_stream(rng.choice(streams))
        live.append(tensor)
        if len(live) > 20:
            live.pop(rng.randrange(len(live)))
        if i % 100 == 99:
            torch.cuda.synchronize()


def graphs(rng):
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).cuda()
    pool = torch.cuda.graph_pool_handle()
    held = []
    for i in range(4):
        text = torch.rand(rng.choice((32, 64, 256)), 1024, device="cuda")
        with torch.inference_mode():
            model(text)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool if i % 2 else None):
                out = model(text)
        graph.replay()
        held.append((graph, text, out))
    held[0][0].reset()
    del held[0]
    mine = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(mine):
        kept = [torch.empty(some_bytes(rng), dtype=torch.uint8, device="cuda") for _ in range(30)]
        del kept[::2]
    lifetimes(rng, 200)
    del held, kept, mine
    torch.cuda.empty_cache()


def ring(rng):
    record(max_entries=4000)
    lstm(rng)


def late(rng):
    torch.cuda.memory._record_memory_history(None)
    model = Speller().cuda()
    train(model, speller_batches(rng, 4), next_word)
    record()
    train(model, speller_batches(rng, 4), next_word)


def state_only(rng):
    record(enabled="state")
    lstm(rng, 3)


def no_context(rng):
    record(context=None)
    lstm(rng, 3)


def native_stacks(rng):
    record(stacks="all")
    lifetimes(rng, 60)
    model = nn.Linear(200, 200).cuda()
    train(model, (torch.rand(9, 200).cuda() for _ in range(2)), classify)


def annotated(rng):
    from torch.profiler import record_function

    record(global_record_annotations=True)
    model = Speller().cuda()
    for step in range(4):
        with record_function(f"ProfilerStep#{step}"):
            train(model, speller_batches(rng, 1), next_word)


def pinned(rng):
    held = [torch.empty(some_bytes(rng) // 64 + 1, dtype=torch.uint8, pin_memory=True)
            for _ in range(20)]
    for tensor in held:
        tensor.cuda(non_blocking=True)
    lstm(rng, 2)


def write(path, text):
    with gzip.open(path + ".gz", "wt", encoding="utf-8", compresslevel=6) as file:
        file.write(text)


def main(case, settings, fraction, folder):
    settings = "" if settings == "-" else settings
    name = re.sub(r"[^A-Za-z0-9]+", "_", f"{case} {settings} {fraction}").strip("_")
    torch.manual_seed(3)
    if float(fraction) < 1:
        torch.cuda.set_per_process_memory_fraction(float(fraction))
    record(max_entries=200000)
    globals()[case](random.Random(f"what if {case}"))
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()
    stats = torch.cuda.memory_stats()
    torch.cuda.memory._record_memory_history(None)
    with gzip.open(os.path.join(folder, name + ".pickle.gz"), "wb", compresslevel=6) as file:
        pickle.dump(snapshot, file)

    from torch.cuda import _memory_viz as viz

    with contextlib.redirect_stdout(io.StringIO()):
        texts = {
            "stats.txt": viz.segsum(snapshot),
            "trace.txt": viz.trace(snapshot),
            "segments.folded": viz.segments(snapshot, lambda folded: folded),
            "memory.folded": viz.memory(snapshot, lambda folded: folded),
        }
    for kind, text in texts.items():
        write(os.path.join(folder, f"{name}.{kind}"), text)
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
        json.dump({"case": case, "settings": settings, "fraction": float(fraction),
                   "stats": stats}, file)
    print(name, sum(map(len, snapshot["device_traces"])), "entries")


if __name__ == "__main__":
    main(*sys.argv[1:])
