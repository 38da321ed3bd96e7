# SPDX-License-Identifier: MIT
"""programs.py NAME: a small program of each library. What it prints to standard output is the same
whoever serves the memory; its time goes to the file that SECONDS_FILE names."""

import os
import sys
import time


def seconds(value):
    path = os.environ.get("SECONDS_FILE")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            print(f"{value:.3f}", file=file)


def torch_steps(device="cuda"):
    import torch

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = torch.nn.Sequential(
        torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    start = 0.0
    steps = int(os.environ.get("STEPS", "200"))
    for step in range(20 + steps):
        if step == 20:
            torch.cuda.synchronize()
            start = time.perf_counter()
        batch = torch.randn(64 + step % 7 * 32, 1024, device=device)
        loss = model(batch).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 55 == 0:
            print(f"{loss.item():.5f}")
    torch.cuda.synchronize()
    seconds(time.perf_counter() - start)
    print("backend:", torch.cuda.get_allocator_backend())


def cupy_steps():
    import cupy

    total = cupy.zeros((), dtype=cupy.float64)
    for size in (100, 1000, 2000, 3000):
        values = cupy.arange(size * size, dtype=cupy.float64).reshape(size, size)
        total += (values / size).sum() + cupy.sqrt(values).max()
    print(f"{float(total):.3f}")


def numba_steps():
    import numpy

    if not hasattr(numpy, "row_stack"):  # Numba asks for it, NumPy has it no more
        numpy.row_stack = numpy.vstack
    from numba import cuda

    @cuda.jit
    def add(values, amount):
        i = cuda.grid(1)
        if i < values.size:
            values[i] += amount

    for size in (1000, 1000000, 5000000):
        values = cuda.to_device(numpy.zeros(size, dtype=numpy.float32))
        add[(size + 255) // 256, 256](values, 2)
        print(values.copy_to_host().sum())


def jax_steps():
    import jax

    key = jax.random.PRNGKey(0)
    for size in (100, 1000, 2000):
        values = jax.random.normal(key, (size, size))
        print(f"{float((values @ values.T).trace()) / size:.2f}")


def processes_child(number):
    import torch

    values = torch.full((1000 * (number + 1), 1000), float(number), device="cuda")
    print(number, values.sum().item(), flush=True)


def processes():
    import torch.multiprocessing as multiprocessing

    for number in range(3):  # one after the other: the order of lines is theirs
        child = multiprocessing.get_context("spawn").Process(target=processes_child, args=(number,))
        child.start()
        child.join()
        print("exit code", child.exitcode)


def shared_child(tensors, answers):
    import torch

    for number in range(3):
        values = tensors.get()
        values += 1
        torch.cuda.synchronize()
        del values
        answers.put(number)


def shared():
    """Tensors that another process changes, and that are freed and allocated anew."""
    import torch
    import torch.multiprocessing as multiprocessing

    context = multiprocessing.get_context("spawn")
    tensors = context.Queue()
    answers = context.Queue()
    child = context.Process(target=shared_child, args=(tensors, answers))
    child.start()
    for number in range(3):
        values = torch.full((1000 * (number + 1), 1000), float(number), device="cuda")
        torch.cuda.synchronize()
        tensors.put(values)
        answers.get()
        print(number, values.sum().item(), flush=True)
        del values
    child.join()
    print("exit code", child.exitcode)


PROGRAMS = {
    "torch": torch_steps,
    "cupy": cupy_steps,
    "numba": numba_steps,
    "jax": jax_steps,
    "processes": processes,
    "shared": shared,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
