# SPDX-License-Identifier: MIT
"""registration.py [--cycles N] [--seconds S] [--memory nccl|tarn]: captured graphs with an
all-reduce of memory registered with NCCL, while pages move. For torchrun, one process per GPU:

    torchrun --nproc_per_node 2 tests/gpu/compact/registration.py

In every cycle each process captures a graph that sums a registered tensor over all processes,
replays it, and between the replays makes blocks of varying sizes on two streams, within a limit
that is too low for what each stream keeps free, so that pages move. It checks the sums, the
contents of all blocks, and that pages did move. Rank 0 prints one line:

    registration: 1000 cycles on 2 GPUs in S s, memory of nccl, 3000 replays, N pages moved

The registered memory is NCCL's (ncclMemAlloc, in a MemPool with the backend's allocator), or a
MemPool of tarn's. Exit code 0: all cycles were done and right; 1: something was wrong; 3: this
PyTorch, NCCL or machine does not register the memory, and the line says why. A process that hangs
in a cycle for a minute writes its stacks and ends with 1. NVLink multicast stays off unless
NCCL_NVLS_ENABLE says otherwise.
"""

import argparse
import datetime
import faulthandler
import os
import random
import sys
import time

MIB = 1 << 20
REGISTERED = 16 * MIB  # bytes
REPLAYS = 3
BLOCKS = 24  # at most, that live at once
LIVE = 640 * MIB  # of them
SLACK = 96 * MIB  # beyond what lives, below the limit: also for pages that are partly used
HANG_SECONDS = 60
UNSUPPORTED = 3


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=240.0, help="after which it gives up")
    parser.add_argument("--memory", choices=("nccl", "tarn"), default="nccl")
    options = parser.parse_args(arguments)
    if options.cycles < 1 or options.seconds <= 0:
        parser.error("there must be a cycle, and time for it")
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        parser.error("start it with torchrun")
    return options


class Unsupported(Exception):
    pass


OPTIONS = parse(sys.argv[1:])
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", RANK))
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

try:
    import torch
    import torch.distributed as dist

    import tarn.torch
except ImportError as missing:
    print(f"registration: not supported: {missing}", file=sys.stderr)
    sys.exit(UNSUPPORTED)


def register(device):
    """A tensor of registered memory, and what has to be kept as long as it is used."""
    backend = dist.group.WORLD._get_backend(device)
    if not hasattr(backend, "register_mem_pool"):
        raise Unsupported(f"torch {torch.__version__} has no register_mem_pool")
    try:
        own = OPTIONS.memory == "tarn"
        pool = torch.cuda.MemPool() if own else torch.cuda.MemPool(backend.mem_allocator)
        with torch.cuda.use_mem_pool(pool):
            tensor = torch.zeros(REGISTERED // 4, device=device)
        backend.register_mem_pool(pool)
    except (AttributeError, RuntimeError, TypeError) as refusal:
        reason = str(refusal).partition("\n")[0]
        raise Unsupported(f"memory of {OPTIONS.memory}: {reason}") from refusal
    return tensor, pool, backend


def agree(value, device):
    """The lowest of all processes' values."""
    tensor = torch.tensor([float(value)], device=device)
    dist.all_reduce(tensor, dist.ReduceOp.MIN)
    return tensor.item()


class Blocks:
    """Blocks of varying sizes on two streams, each full of its own number. Sizes are the same in
    every run."""

    def __init__(self, device):
        self.device = device
        self.streams = (torch.cuda.current_stream(device), torch.cuda.Stream(device))
        self.live = []  # tensor, its number, its stream
        self.draw = random.Random(7)
        self.next = 1
        self.wrong = torch.zeros(1, dtype=torch.int64, device=device)

    def bytes(self):
        return sum(4 * len(tensor) for tensor, _, _ in self.live)

    def add(self):
        size = self.draw.randint(1, 48) * MIB + 4096 * self.draw.randint(0, 255)
        while self.live and (len(self.live) >= BLOCKS or self.bytes() + size > LIVE):
            self.drop()
        stream = self.streams[self.draw.randrange(2)]
        with torch.cuda.stream(stream):
            tensor = torch.full((size // 4,), self.next, dtype=torch.int32, device=self.device)
        self.live.append((tensor, self.next, stream))
        self.next = self.next % 1_000_000 + 1

    def drop(self):
        tensor, number, stream = self.live.pop(self.draw.randrange(len(self.live)))
        with torch.cuda.stream(stream):
            # Comparing the whole tensor would need several times its memory.
            is_wrong = (torch.stack(torch.aminmax(tensor)) != number).any()
        self.streams[0].wait_stream(stream)
        self.wrong += is_wrong
        is_wrong.record_stream(self.streams[0])

    def drop_all(self):
        while self.live:
            self.drop()


def capture(tensor, given, side):
    """A graph that sums `given` over all processes, in registered memory; and its result."""
    # As torch.cuda.graph does: at the limit a capture could get no page, because it may not wait.
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    graph = torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        # Other threads, as NCCL's watchdog, may ask for events meanwhile.
        graph.capture_begin(capture_error_mode="thread_local")
        tensor.copy_(given)
        dist.all_reduce(tensor)
        out = tensor[:: len(tensor) // 1024] * 2
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(side)
    return graph, out


def cycle(number, tensor, given, side, blocks):
    """Returns how many values were wrong, on the device."""
    graph, out = capture(tensor, given, side)
    wrong = torch.zeros(1, dtype=torch.int64, device=blocks.device)
    for replay in range(REPLAYS):
        value = number % 97 + replay
        given.fill_(value + RANK)
        for _ in range(4):
            blocks.add()
        graph.replay()
        for _ in range(2):
            blocks.add()
        wrong += (out != 2 * (WORLD * value + WORLD * (WORLD - 1) // 2)).sum()
    torch.cuda.current_stream().synchronize()  # before the graph goes away
    return wrong


def run(device):
    """Returns the cycles done, the seconds they took, and what was wrong."""
    tensor, pool, backend = register(device)
    given = torch.zeros_like(tensor)
    side = torch.cuda.Stream(device)
    blocks = Blocks(device)
    wrong = torch.zeros(1, dtype=torch.int64, device=device)
    dist.all_reduce(given)  # the communicator is there before the first capture
    torch.cuda.synchronize(device)
    total = torch.cuda.get_device_properties(device).total_memory
    limit = torch.cuda.memory_reserved(device) + LIVE + SLACK
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), device)
    begun = time.monotonic()
    done = 0
    while done < OPTIONS.cycles:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        wrong += cycle(done, tensor, given, side, blocks)
        done += 1
        if done % 20 == 0 and agree(OPTIONS.seconds - (time.monotonic() - begun), device) < 0:
            break
    blocks.drop_all()
    torch.cuda.synchronize(device)
    faulthandler.cancel_dump_traceback_later()
    seconds = time.monotonic() - begun
    problems = []
    if wrong.item():
        problems.append(f"{wrong.item()} sums are wrong")
    if blocks.wrong.item():
        problems.append(f"{blocks.wrong.item()} blocks are wrong")
    if done < OPTIONS.cycles:
        problems.append(f"{OPTIONS.cycles - done} cycles were not done")
    backend.deregister_mem_pool(pool)
    return done, seconds, problems


def main():
    faulthandler.dump_traceback_later(2 * HANG_SECONDS, exit=True)  # to start, and to register
    if torch.cuda.device_count() <= LOCAL_RANK:
        raise Unsupported(f"rank {RANK} has no GPU of its own")
    tarn.torch.install("policy:compact")
    device = torch.device("cuda", LOCAL_RANK)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device,
                            timeout=datetime.timedelta(seconds=HANG_SECONDS))
    dist.all_reduce(torch.zeros(1, device=device))
    done, seconds, problems = run(device)
    moved = tarn.torch.page_stats()[LOCAL_RANK]["moved"]
    if moved == 0:
        problems.append("no page moved")
    is_right = agree(not problems, device) == 1
    if problems:
        print(f"registration: rank {RANK}: {', '.join(problems)}", file=sys.stderr)
    if RANK == 0:
        print(f"registration: {done} cycles on {WORLD} GPUs in {seconds:.1f} s,",
              f"memory of {OPTIONS.memory}, {done * REPLAYS} replays, {moved} pages moved"
              + ("" if is_right else ": WRONG"), flush=True)
    dist.destroy_process_group()
    return 0 if is_right else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unsupported as reason:
        print(f"registration: not supported: {reason}", file=sys.stderr, flush=True)
        os._exit(UNSUPPORTED)  # without waiting for the others
