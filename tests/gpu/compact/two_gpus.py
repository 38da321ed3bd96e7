# SPDX-License-Identifier: MIT
"""two_gpus.py KIND ALLOCATOR RESULTS [STEPS]: one rank of training on several GPUs, for torchrun.

KIND is fsdp (fully_shard) or ddp; ALLOCATOR as for measure.py. Texts are of varying length, the
same for all allocators. Rank 0 adds a JSON line with losses, peaks and the time of a step. With
COLLECT=FOLDER in the environment each rank records its history, and writes summaries for `tarn
ranks` into the folder after step 20 and at the end.
"""

import json
import os
import statistics
import sys
import time

KIND, ALLOCATOR, RESULTS = sys.argv[1:4]
STEPS = int(sys.argv[4]) if len(sys.argv) > 4 else 40
RANK = int(os.environ["RANK"])
if ALLOCATOR == "expandable":
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"

import torch  # noqa: E402  after the settings
import torch.distributed as dist  # noqa: E402
from workloads import draw_for  # noqa: E402

if ALLOCATOR in ("exact", "compact"):
    import tarn.torch

    tarn.torch.install("policy:compact" if ALLOCATOR == "compact" else "")


def sharded(model):
    from torch.distributed.fsdp import fully_shard

    for block in model.transformer.h:
        fully_shard(block)
    return fully_shard(model)


def collector():
    """None without COLLECT."""
    if not os.environ.get("COLLECT"):
        return None
    from tarn.torch.collect import Collector

    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    mesh = dist.device_mesh.init_device_mesh(
        "cuda", (dist.get_world_size(),), mesh_dim_names=("dp",)
    )
    made = Collector(os.environ["COLLECT"], mesh=mesh, layout={"kind": KIND}, steps=[20])
    made.at_oom()
    return made


def main():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.cuda.set_device(RANK)
    torch.manual_seed(0)
    dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
    collected = collector()
    config = GPT2Config(use_cache=False, n_layer=16, n_embd=1024, n_head=16,
                        attn_implementation="eager")
    with torch.device("cuda"):
        model = GPT2LMHeadModel(config).train()
    model = sharded(model) if KIND == "fsdp" else torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses, seconds = [], []
    for number in range(STEPS):
        length = draw_for(number).randint(64, 512)
        generator = torch.Generator().manual_seed(number * 2 + RANK)
        text = torch.randint(50257, (4, length), generator=generator).cuda()
        begun = time.perf_counter()
        loss = model(text, labels=text).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begun)
        if collected:
            collected.step()
    if collected:
        collected.write()
    stats = torch.cuda.memory_stats()
    if RANK == 0:
        line = {
            "kind": KIND,
            "allocator": ALLOCATOR,
            "losses": losses,
            "step_ms": 1000 * statistics.median(seconds[10:]),
            "allocated": stats["allocated_bytes.all.peak"],
            "reserved": stats["reserved_bytes.all.peak"],
            "retries": stats["num_alloc_retries"],
        }
        pages = tarn.torch.page_stats().get(0) if ALLOCATOR == "compact" else None
        if pages:
            line["pages"] = {key: pages[key] for key in ("created", "moved", "request_ns")}
        with open(RESULTS, "a", encoding="utf-8") as file:
            print(json.dumps(line), file=file)
        print(KIND, ALLOCATOR, f"{line['step_ms']:.2f} ms, reserved / allocated",
              f"{line['reserved'] / line['allocated']:.4f}, loss {losses[-1]:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
