# SPDX-License-Identifier: MIT
"""What measure.py runs: programs whose shapes vary from step to step.

A workload is a function that makes its models and returns a function for one step, which takes the
number of the step. Its shapes depend on that number alone, so that all allocators are asked for the
same. A step has ended when it returns.
"""

import random

import torch
from torch import nn
from torch.nn import functional

MIB = 1 << 20


def draw_for(step):
    return random.Random(f"step {step}")


def trainer(model, optimizer, loss_of):
    def step(batch):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()

    return step


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4)


def gpt2():
    """GPT-2 124M, batches of 8 texts of varying length."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config(use_cache=False)).train()
    train = trainer(model, adam(model), lambda m, text: m(text, labels=text).loss)

    def step(number):
        length = draw_for(number).randint(128, 1024)
        train(torch.randint(50257, (8, length), device="cuda"))

    return step


def classify(model, images):
    wanted = torch.zeros(len(images), dtype=torch.long, device="cuda")
    return functional.cross_entropy(model(images), wanted)


def resnet():
    """ResNet-50, images and batches of varying size."""
    from torchvision.models import resnet50

    with torch.device("cuda"):
        model = resnet50().train()
    train = trainer(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), classify)

    def step(number):
        draw = draw_for(number)
        side = 32 * draw.randint(4, 9)
        train(torch.rand(draw.randint(24, 72), 3, side, side, device="cuda"))

    return step


def generate():
    """GPT-2 of 12 layers that generates with caches of keys and values that grow."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config()).eval()

    @torch.inference_mode()
    def step(number):
        draw = draw_for(number)
        text = torch.randint(50257, (draw.randint(8, 48), draw.randint(64, 800)), device="cuda")
        past = None
        for _ in range(20):
            out = model(text, past_key_values=past, use_cache=True)
            past, text = out.past_key_values, out.logits[:, -1:].argmax(-1)
        text.sum().item()

    return step


def streams():
    """Two side streams that are handed tensors and make some of their own."""
    sides = [torch.cuda.Stream() for _ in range(2)]
    weight = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    kept = []

    def step(number):
        main = torch.cuda.current_stream()
        for i in range(8):
            draw = draw_for(number * 8 + i)
            x = torch.randn(1024 * draw.randint(1, 24), 2048, device="cuda", dtype=torch.bfloat16)
            side = sides[draw.randrange(2)]
            side.wait_stream(main)
            with torch.cuda.stream(side):
                y = functional.gelu(x @ weight)
                if draw.random() < 0.6:
                    y = y + torch.cat([x, y])[: len(x)]
            x.record_stream(side)
            main.wait_stream(side)
            y.record_stream(main)
            kept.append((y * 2).mean(0) if draw.random() < 0.7 else y)
            del x, y
            while len(kept) > 10:
                kept.pop(draw.randrange(len(kept)))
        torch.cuda.synchronize()

    return step


class Experts(nn.Module):
    """Each token goes to two of the experts, which get as many as like them."""

    def __init__(self, width=1024, count=8):
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(count)
        )

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows, place = (chosen == i).nonzero(as_tuple=True)
            out = out.index_add(0, rows, expert(x[rows]) * weights[rows, place, None].to(x.dtype))
        return out + x


def experts():
    """Four layers of a mixture of experts."""
    with torch.device("cuda"):
        model = nn.Sequential(*(Experts() for _ in range(4))).train()
    train = trainer(model, adam(model), lambda m, x: (m(x) - x).square().mean())

    def step(number):
        tokens = draw_for(number).randint(4000, 16000)
        train(torch.randn(tokens, 1024, device="cuda", dtype=torch.bfloat16))

    return step


def detection():
    """Faster R-CNN on images of varying size with varying numbers of boxes."""
    from torchvision.models.detection import fasterrcnn_resnet50_fpn

    with torch.device("cuda"):
        model = fasterrcnn_resnet50_fpn(
            weights=None, weights_backbone=None, min_size=400, max_size=700
        ).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step(number):
        draw = draw_for(number)
        images, targets = [], []
        for _ in range(4):
            images.append(torch.rand(3, draw.randint(200, 600), draw.randint(200, 600)).cuda())
            corner = torch.rand(draw.randint(1, 20), 2) * 90
            targets.append(
                {
                    "boxes": torch.cat([corner, corner + 10 + torch.rand(len(corner), 2) * 90], 1),
                    "labels": torch.ones(len(corner), dtype=torch.long),
                }
            )
        targets = [{k: v.cuda() for k, v in target.items()} for target in targets]
        loss = sum(model(images, targets).values())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()

    return step


def serving():
    """Requests come and go, each with caches of its own that grow token by token."""
    width, layers = 2048, 8
    weights = [
        torch.randn(width, 3 * width, device="cuda", dtype=torch.bfloat16) * 0.01
        for _ in range(layers)
    ]
    requests = []

    @torch.inference_mode()
    def attend(x, request):
        for i, weight in enumerate(weights):
            q, k, v = (x @ weight).split(width, -1)
            if request[i] is not None:
                k = torch.cat([request[i][0], k])
                v = torch.cat([request[i][1], v])
            request[i] = (k, v)
            x = functional.scaled_dot_product_attention(
                *(part.view(-1, 16, 128).transpose(0, 1) for part in (q, k, v))
            )
            x = x.transpose(0, 1).reshape(-1, width)
        return x[-1:]

    def step(number):
        draw = draw_for(number)
        while len(requests) < 24:
            request = [None] * layers
            prompt = torch.randn(draw.randint(100, 4000), width, device="cuda",
                                 dtype=torch.bfloat16)
            requests.append([request, attend(prompt, request), draw.randint(4, 30)])
        for one in requests:
            one[1] = attend(one[1], one[0])
            one[2] -= 1
        requests[:] = [one for one in requests if one[2] > 0]
        torch.cuda.synchronize()

    return step


def graphs():
    """Graphs of several batch sizes, captured as they come, among work of varying size."""
    with torch.device("cuda"):
        model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).eval()
    captured = {}

    @torch.inference_mode()
    def step(number):
        draw = draw_for(number)
        rows = 512 * draw.randint(1, 8)
        if rows not in captured:
            given = torch.zeros(rows, 2048, device="cuda")
            model(given)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = model(given)
            captured[rows] = graph, given, out
        graph, given, out = captured[rows]
        given.copy_(torch.randn(rows, 2048, device="cuda"))
        graph.replay()
        noise = [torch.randn(draw.randint(1, 40) * MIB, device="cuda") for _ in range(8)]
        out.mean().item()
        del noise

    return step


ALL = (gpt2, resnet, generate, streams, experts, detection, serving, graphs)
