#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""imitate.py KIND FILE: a snapshot with a trace of what a program on a GPU would allocate, without
a GPU, for `tarn replay`. KIND is one of

    streams   two side streams that are handed tensors (tests/gpu/compact/workloads.py), 50 steps
    serving   24 requests that come and go, whose caches grow (the same), 50 steps
    fsdp      one of two ranks of fully_shard with a GPT-2 of 16 layers, texts of varying length
              (tests/gpu/compact/two_gpus.py), 40 steps: parameters are gathered one block ahead
              on two streams, gradients reduced on a fourth
    experts   four layers of eight experts, as many tokens to each as the step's routing gives it
              (the first file), 40 steps
    training  a GPT-2 124M in mixed precision, 8 texts of one length, 40 steps that are all alike

The sizes follow from the programs, which libraries a program calls does not: small temporary
tensors, and those of kernels, are missing. Times are rough. The same arguments give the same file.
"""

import pickle
import random
import sys

PAGE = 2 << 20
FLOAT = 4
HALF = 2


class Trace:
    """Every block has addresses of its own, which a replay under other settings ignores."""

    def __init__(self):
        self.events = []
        self.live = {}
        self.next = 0x7F0000000000
        self.now_us = 0

    def add(self, action, address, size, stream):
        self.events.append({"action": action, "addr": address, "size": size, "stream": stream,
                            "time_us": self.now_us, "frames": []})

    def alloc(self, size, stream=0):
        size = (max(size, 1) + 511) // 512 * 512
        address = self.next
        self.next += (size + PAGE - 1) // PAGE * PAGE
        self.live[address] = size, stream
        self.add("alloc", address, size, stream)
        return address

    def begin_free(self, address):
        """Frees a block that another stream uses; returns what ends it."""
        size, stream = self.live.pop(address)
        self.add("free_requested", address, size, stream)
        return lambda: self.add("free_completed", address, size, stream)

    def free(self, *addresses):
        for address in addresses:
            self.begin_free(address)()

    def write(self, path):
        self.free(*list(self.live))
        with open(path, "wb") as file:
            pickle.dump({"segments": [], "device_traces": [self.events],
                         "allocator_settings": {}}, file, protocol=4)


def draw_for(step):
    return random.Random(f"step {step}")


def streams(trace):
    width = 2048
    trace.alloc(width * width * HALF)
    kept = []
    for step in range(50):
        ends = []
        for part in range(8):
            draw = draw_for(step * 8 + part)
            size = 1024 * draw.randint(1, 24) * width * HALF
            x = trace.alloc(size)
            side = (7, 8)[draw.randrange(2)]
            product = trace.alloc(size, side)
            y = trace.alloc(size, side)
            trace.free(product)
            if draw.random() < 0.6:
                both, total = trace.alloc(2 * size, side), trace.alloc(size, side)
                trace.free(both, y)
                y = total
            if draw.random() < 0.7:
                doubled, mean = trace.alloc(size), trace.alloc(width * HALF)
                trace.free(doubled)
                kept.append(mean)
                ends += [trace.begin_free(x), trace.begin_free(y)]
            else:
                kept.append(y)
                ends.append(trace.begin_free(x))
            while len(kept) > 10:
                trace.free(kept.pop(draw.randrange(len(kept))))
            trace.now_us += 350
        for end in ends:
            end()


def attend(trace, caches, x, tokens):
    """Eight layers; caches[i] is None or the tokens and blocks of the keys and values."""
    row = 2048 * HALF
    for i, cache in enumerate(caches):
        joint = trace.alloc(3 * tokens * row)
        trace.now_us += 40
        if cache is None:
            caches[i] = tokens, [joint]
            out = trace.alloc(tokens * row)
            plain = trace.alloc(tokens * row)
            trace.free(x, out)
            x = plain
        else:
            total = cache[0] + tokens
            caches[i] = total, [trace.alloc(total * row), trace.alloc(total * row)]
            trace.free(*cache[1])
            out = trace.alloc(tokens * row)
            trace.free(x, joint)
            x = out
    return x


def serving(trace):
    for _ in range(8):
        trace.alloc(2048 * 3 * 2048 * HALF)
    requests = []
    for step in range(50):
        draw = draw_for(step)
        while len(requests) < 24:
            tokens = draw.randint(100, 4000)
            caches = [None] * 8
            x = attend(trace, caches, trace.alloc(tokens * 2048 * HALF), tokens)
            requests.append([caches, x, draw.randint(4, 30)])
        for request in requests:
            request[1] = attend(trace, request[0], request[1], 1)
            request[2] -= 1
        for caches, x, left in requests:
            if left <= 0:
                for _, blocks in caches:
                    trace.free(*blocks)
                trace.free(x)
        requests = [request for request in requests if request[2] > 0]
        trace.now_us += 5000


class Sharded:
    """Parameters of 16 blocks and of the root, half of each on this rank."""

    WIDTH, HEADS, LAYERS, BATCH, WORDS, RANKS = 1024, 16, 16, 4, 50257, 2
    COPY_IN, GATHER, REDUCE = 8, 7, 9  # streams

    def __init__(self, trace):
        w = self.WIDTH * FLOAT
        square = w * self.WIDTH
        block = [3 * square, square, 4 * square, 4 * square, 3 * w, w, 4 * w] + 5 * [w]
        self.trace = trace
        self.parts = [block] * self.LAYERS + [[self.WORDS * w, 1024 * w, w, w]]
        self.reducing = None
        self.reduced = []
        for parts in self.parts:
            self.alloc_shards(parts)

    def shard(self, size):
        return (size + self.RANKS - 1) // self.RANKS

    def alloc_shards(self, parts):
        return [self.trace.alloc(self.shard(size)) for size in parts]

    def gather(self, layer):
        """Starts to collect the layer's parameters; None if there is no such layer."""
        if not 0 <= layer < len(self.parts):
            return None
        total = sum(self.parts[layer])
        return (layer, self.trace.alloc(self.shard(total), self.COPY_IN),
                self.trace.alloc(total, self.GATHER))

    def unpack(self, gathered, following):
        """The layer's parameters, and what `following` is being collected meanwhile."""
        layer, sent, received = gathered
        full = [self.trace.alloc(size) for size in self.parts[layer]]
        ahead = self.gather(following)
        self.trace.free(sent, received)
        return full, ahead

    def reduce(self, layer, gradients):
        total = sum(self.parts[layer])
        joint = self.trace.alloc(total, self.REDUCE)
        self.trace.free(*gradients)
        if self.reducing:
            self.trace.free(self.reducing)
        self.reduced.append(self.trace.alloc(self.shard(total), self.REDUCE))
        self.reducing = joint

    def forward(self, layer_count, rows, length):
        """What each layer keeps for the backward pass, and the root's parameters."""
        trace, row = self.trace, self.WIDTH * FLOAT
        scores = self.BATCH * self.HEADS * length * length
        root, ahead = self.unpack(self.gather(layer_count), 0)
        kept = []
        begin = trace.alloc(rows * row)
        for layer in range(layer_count):
            full, ahead = self.unpack(ahead, layer + 1 if layer + 1 < layer_count else -1)
            saved = [trace.alloc(rows * row), trace.alloc(3 * rows * row)]
            raw = trace.alloc(scores * FLOAT)
            saved.append(trace.alloc(scores * FLOAT))
            trace.free(raw)
            saved += [trace.alloc(scores * FLOAT), trace.alloc(scores), trace.alloc(rows * row)]
            trace.free(trace.alloc(rows * row))
            saved += [trace.alloc(rows * row), trace.alloc(rows * row)]
            saved += [trace.alloc(4 * rows * row) for _ in range(6)]
            saved.append(trace.alloc(rows * row))
            trace.now_us += 900
            trace.free(*full)
            kept.append(saved)
        return begin, kept, root

    def backward(self, kept, rows):
        trace, row = self.trace, self.WIDTH * FLOAT
        words = [trace.alloc(rows * self.WORDS * FLOAT) for _ in range(3)]
        trace.free(words[1])
        trace.now_us += 500
        gradient = trace.alloc(rows * row)
        of_words = trace.alloc(self.WORDS * row)
        trace.free(words[2], words[0])
        ahead = self.gather(len(kept) - 1)
        for layer in reversed(range(len(kept))):
            full, ahead = self.unpack(ahead, layer - 1)
            inner = trace.alloc(4 * rows * row)
            for block in reversed(kept[layer]):
                temporary = trace.alloc(trace.live[block][0])
                trace.free(block, temporary)
            gradients = [trace.alloc(size) for size in self.parts[layer]]
            following = trace.alloc(rows * row)
            trace.free(inner, gradient)
            gradient = following
            trace.free(*full)
            self.reduce(layer, gradients)
            trace.now_us += 1800
        self.reduce(len(kept), [of_words])
        trace.free(self.reducing, gradient)
        self.reducing = None


def fsdp(trace):
    model = Sharded(trace)
    states = False
    for step in range(40):
        length = draw_for(step).randint(64, 512)
        rows = model.BATCH * length
        begin, kept, root = model.forward(model.LAYERS, rows, length)
        model.backward(kept, rows)
        trace.free(begin, *root)
        if not states:
            for parts in model.parts:
                model.alloc_shards(parts + parts)
            states = True
        trace.free(*[block for parts in model.parts for block in model.alloc_shards(parts)])
        trace.free(*model.reduced)
        model.reduced.clear()
        trace.now_us += 3000


class MixedPrecision:
    """Parameters of 12 blocks and of the root, copied to half precision by each block."""

    WIDTH, HEADS, LAYERS, BATCH, LENGTH, WORDS = 768, 12, 12, 8, 915, 50257
    ROWS = BATCH * LENGTH

    def __init__(self, trace):
        row = self.WIDTH * FLOAT
        square = row * self.WIDTH
        self.trace = trace
        self.matrices = [3 * square, square, 4 * square, 4 * square]
        self.block = self.matrices + [3 * row, row, 4 * row] + 5 * [row]
        self.root = [self.WORDS * row, 1024 * row]
        self.parameters = self.root + self.LAYERS * self.block
        for size in self.parameters:
            trace.alloc(size)

    def rows(self, *widths):
        """A block of that many times the model's width for each token, in half precision."""
        return [self.trace.alloc(width * self.ROWS * self.WIDTH * HALF) for width in widths]

    def forward(self):
        """What each layer keeps for the backward pass."""
        kept = []
        for _ in range(self.LAYERS):
            saved = [self.trace.alloc(size // 2) for size in self.matrices]
            saved += self.rows(2, 1, 3, 1)
            saved.append(self.trace.alloc(self.BATCH * self.HEADS * self.LENGTH * FLOAT))
            self.trace.free(*self.rows(1))
            projected, added = self.rows(1, 2)
            self.trace.free(projected)
            saved += [added] + self.rows(2, 1, 4, 4, 4, 4, 4, 4, 4)
            self.trace.free(*self.rows(4))
            projected, added = self.rows(1, 2)
            self.trace.free(projected)
            kept.append(saved + [added])
            self.trace.now_us += 500
        return kept

    def loss(self):
        """The gradients of the words, and of the last layer's result."""
        words = self.ROWS * self.WORDS
        half, whole, soft = [self.trace.alloc(words * size) for size in (HALF, FLOAT, FLOAT)]
        self.trace.free(whole)
        whole = self.trace.alloc(words * FLOAT)
        self.trace.free(soft)
        narrow = self.trace.alloc(words * HALF)
        self.trace.free(whole, half)
        gradient = self.trace.alloc(self.root[0])
        result = self.rows(2)[0]
        self.trace.free(narrow)
        return gradient, result

    def backward(self, kept):
        """The gradients of all parameters."""
        of_words, result = self.loss()
        gradients = [of_words]
        for saved in reversed(kept):
            for block in reversed(saved):
                temporary = self.trace.alloc(self.trace.live[block][0])
                self.trace.free(block, temporary)
            for size in self.block:
                half = self.trace.alloc(size // 2)
                gradients.append(self.trace.alloc(size))
                self.trace.free(half)
            following = self.rows(2)[0]
            self.trace.free(result)
            result = following
            self.trace.now_us += 900
        gradients.append(self.trace.alloc(self.root[1]))
        self.trace.free(result)
        return gradients


def training(trace):
    model = MixedPrecision(trace)
    for step in range(40):
        begin = trace.alloc(model.ROWS * 8), model.rows(2)[0]
        gradients = model.backward(model.forward())
        trace.free(*begin)
        if step == 0:
            for size in model.parameters:
                trace.alloc(2 * size)  # what the optimizer keeps
        for size in model.parameters:
            trace.free(trace.alloc(size))
        trace.free(*gradients)
        trace.now_us += 3000


class Experts:
    """Four layers in mixed precision: a gate, and eight experts of two matrices each."""

    WIDTH, LAYERS, COUNT = 1024, 4, 8

    def __init__(self, trace):
        self.trace = trace
        self.matrix = 4 * self.WIDTH * self.WIDTH * FLOAT
        self.gate = [self.COUNT * self.WIDTH * FLOAT, self.COUNT * FLOAT]
        self.expert = [self.matrix, 4 * self.WIDTH * FLOAT, self.matrix, self.WIDTH * FLOAT]
        self.parameters = self.LAYERS * (self.gate + self.COUNT * self.expert)
        for size in self.parameters:
            trace.alloc(size)

    def rows(self, count, width):
        return self.trace.alloc(count * width * HALF)

    def routed(self, tokens, draw):
        """How many rows each expert gets: two experts a token."""
        shares = [draw.uniform(0.5, 1.5) for _ in range(self.COUNT)]
        return [max(1, int(2 * tokens * share / sum(shares))) for share in shares]

    def layer(self, tokens, draw):
        """What a layer keeps: of the gate, of each expert, and its result."""
        trace = self.trace
        gate = [trace.alloc(size // 2) for size in self.gate]
        scores = self.rows(tokens, self.COUNT)
        gate += [trace.alloc(tokens * self.COUNT * FLOAT) for _ in range(2)]
        trace.free(scores)
        gate += [trace.alloc(tokens * 2 * FLOAT), trace.alloc(tokens * 2 * 8)]
        out = self.rows(tokens, self.WIDTH)
        experts = []
        for count in self.routed(tokens, draw):
            chosen = trace.alloc(tokens * 2)
            kept = [trace.alloc(count * 2 * 8)]
            trace.free(chosen)
            kept.append(self.rows(count, self.WIDTH))
            kept += [trace.alloc(size // 2) for size in self.expert[:2]]
            kept += [self.rows(count, 4 * self.WIDTH) for _ in range(2)]
            kept += [trace.alloc(size // 2) for size in self.expert[2:]]
            kept += [self.rows(count, self.WIDTH), trace.alloc(count * FLOAT)]
            kept.append(trace.alloc(count * HALF))
            weighted = self.rows(count, self.WIDTH)
            added = self.rows(tokens, self.WIDTH)
            trace.free(weighted, out)
            out = added
            experts.append((count, kept))
            trace.now_us += 100
        result = self.rows(tokens, self.WIDTH)
        trace.free(out)
        return gate, experts, result

    def expert_back(self, count, kept, gradients):
        """One expert's gradients; returns that of its rows."""
        trace = self.trace
        rows, x, wide, wide_bias, before, after, narrow, narrow_bias, out, weight, half = kept
        of_weighted = self.rows(count, self.WIDTH)
        of_out, of_weight = self.rows(count, self.WIDTH), self.rows(count, self.WIDTH)
        trace.free(out, half, trace.alloc(count * FLOAT), of_weighted, of_weight, weight)
        of_after, of_matrix = self.rows(count, 4 * self.WIDTH), trace.alloc(self.matrix // 2)
        gradients += [trace.alloc(self.matrix), trace.alloc(self.expert[3])]
        trace.free(of_matrix, narrow, narrow_bias, after, of_out)
        of_before = self.rows(count, 4 * self.WIDTH)
        trace.free(of_after, before)
        of_x, of_matrix = self.rows(count, self.WIDTH), trace.alloc(self.matrix // 2)
        gradients += [trace.alloc(self.matrix), trace.alloc(self.expert[1])]
        trace.free(of_matrix, wide, wide_bias, x, rows, of_before)
        return of_x

    def backward(self, tokens, layers):
        trace = self.trace
        gradients = []
        result = self.rows(tokens, self.WIDTH)
        for gate, experts, out in reversed(layers):
            trace.free(out)
            gradient = trace.alloc(tokens * self.WIDTH * HALF)
            for count, kept in reversed(experts):
                of_rows = self.expert_back(count, kept, gradients)
                spread = self.rows(tokens, self.WIDTH)
                following = self.rows(tokens, self.WIDTH)
                trace.free(of_rows, spread, gradient)
                gradient = following
                trace.now_us += 200
            gradients += [trace.alloc(size) for size in self.gate]
            trace.free(*gate)
            trace.free(result)
            result = gradient
        trace.free(result)
        return gradients


def experts(trace):
    model = Experts(trace)
    for step in range(40):
        draw = draw_for(step)
        tokens = draw.randint(4000, 16000)
        x = model.rows(tokens, model.WIDTH)
        layers = [model.layer(tokens, draw) for _ in range(model.LAYERS)]
        loss = [trace.alloc(tokens * model.WIDTH * FLOAT) for _ in range(2)]
        trace.free(*loss)
        gradients = model.backward(tokens, layers)
        if step == 0:
            for size in model.parameters:
                trace.alloc(size)  # what the optimizer keeps
                trace.alloc(size)
        trace.free(*[trace.alloc(size) for size in model.parameters])
        trace.free(x, *gradients)
        trace.now_us += 3000


KINDS = {"streams": streams, "serving": serving, "fsdp": fsdp,
         "experts": experts, "training": training}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: imitate.py {'|'.join(KINDS)} FILE")
    trace = Trace()
    KINDS[sys.argv[1]](trace)
    trace.write(sys.argv[2])


if __name__ == "__main__":
    main()
