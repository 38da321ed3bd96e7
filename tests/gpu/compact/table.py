# SPDX-License-Identifier: MIT
"""Results of measure.py, for documents.

table.py csv RESULTS.jsonl DATE MACHINE COMMIT: as CSV, a figure a line, for bench/results.
table.py write RESULTS.csv: puts its tables into README.md and docs/compact.md, and draws
docs/images/compact.svg. table.py check RESULTS.csv: exit status 1 if they hold something else.
"""

import csv
import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
HEADER = ("date", "machine", "commit", "allocator", "workload", "figure", "value")
ALLOCATORS = {
    "native": "PyTorch",
    "expandable": "PyTorch, expandable segments",
    "compact": "tarn, `policy:compact`",
}
COLOURS = {"native": "#b9c0c9", "expandable": "#6f8fb5", "compact": "#d9622b"}
WORKLOADS = {
    "gpt2": "GPT-2, texts of varying length",
    "resnet": "ResNet-50, images of varying size",
    "experts": "mixture of experts",
    "detection": "Faster R-CNN, images of varying size",
    "generate": "generation with growing caches",
    "serving": "requests that come and go",
    "streams": "two side streams, host-bound",
    "graphs": "captured graphs of eight sizes",
}
BEGIN = "<!-- live: begin, written by tests/gpu/compact/table.py -->"
END = "<!-- live: end -->"


def figures(path):
    """(allocator, workload, figure): value of the runs in a file of measure.py."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(text) for text in file]
    found = {}
    for line in lines:
        key = line["allocator"], line["workload"]
        live = line["allocated"]
        if line["run"] == "free":
            found[(*key, "live")] = live
            found[(*key, "peak")] = line["driver"] / live
            if "pages" in line:
                found[(*key, "created")] = line["pages"]["created"]
                found[(*key, "moved")] = line["pages"]["moved"]
        if line["run"] == "unwatched":
            found[(*key, "step_ms")] = line["step_ms"]
        if line["run"] == "tight" and line["ok"]:
            found[(*key, "tight_step_ms")] = line["step_ms"]
        if line["run"] == "fixed" and line["ok"]:
            found[(*key, "moved_in_fixed_shapes")] = line["pages"]["moved_in_second_half"]
    for line in lines:
        key = line["allocator"], line["workload"]
        ratio = (line["limit"] or 0) / found[(*key, "live")]
        if line["run"] == "limit" and line["ok"] and ratio < found.get((*key, "limit"), 1e9):
            found[(*key, "limit")] = ratio
            found[(*key, "retries")] = line["retries"]
            found[(*key, "limit_step_ms")] = line["step_ms"]
    return found


def write_csv(results, *origin):
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(HEADER)
    for (allocator, workload, figure), value in figures(results).items():
        shown = value if isinstance(value, int) else f"{value:.4f}"
        out.writerow((*origin, allocator, workload, figure, shown))


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(r["allocator"], r["workload"], r["figure"]): float(r["value"]) for r in rows}
    return rows[0], found


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table(found, text_of):
    lines = [row(["workload", *ALLOCATORS.values()]), row(["---"] + ["--:"] * len(ALLOCATORS))]
    for workload, name in WORKLOADS.items():
        lines.append(row([name, *(text_of(found, a, workload) for a in ALLOCATORS)]))
    return "\n".join(lines)


def peak_text(found, allocator, workload):
    return f"{found[allocator, workload, 'peak']:.3f}"


def limit_text(found, allocator, workload):
    retries = int(found[allocator, workload, "retries"])
    after = "" if retries == 0 else f", {retries} {'retry' if retries == 1 else 'retries'}"
    return f"{found[allocator, workload, 'limit']:.4g}{after}"


def source(first):
    return f"{first['machine']}, {first['date']}, commit {first['commit']}"


def picture(first, found):
    """Bars of what is reserved beyond what lives, as SVG."""
    width, left, bar, gap = 760, 250, 12, 16
    scale = (width - left - 60) / 2.8
    group = bar * len(ALLOCATORS) + gap
    height = 64 + group * len(WORKLOADS)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<text x="12" y="20" font-size="14">Physical memory at the peak / memory that lives '
        "(by NVML; bars begin at 1)</text>",
    ]
    at = 12
    for allocator, name in ALLOCATORS.items():
        name = name.replace("`", "")
        out.append(f'<rect x="{at}" y="30" width="10" height="10" fill="{COLOURS[allocator]}"/>')
        out.append(f'<text x="{at + 15}" y="40">{name}</text>')
        at += 40 + 7 * len(name)
    for i, (workload, name) in enumerate(WORKLOADS.items()):
        y = 56 + i * group
        out.append(
            f'<text x="{left - 8}" y="{y + bar * 2 - 2}" text-anchor="end">{name}</text>'
        )
        for j, allocator in enumerate(ALLOCATORS):
            value = found[allocator, workload, "peak"]
            top = y + j * bar
            out.append(
                f'<rect x="{left}" y="{top}" width="{(value - 1) * scale + 1:.1f}" '
                f'height="{bar - 2}" fill="{COLOURS[allocator]}"/>'
            )
            out.append(
                f'<text x="{left + (value - 1) * scale + 6:.1f}" y="{top + bar - 3}" '
                f'font-size="10">{value:.3f}</text>'
            )
    out.append(f'<text x="12" y="{height - 6}" font-size="10" fill="#555">{source(first)}</text>')
    return "\n".join(out + ["</svg>", ""])


def between(text, table_text):
    head, rest = text.split(BEGIN + "\n", 1)
    return head + BEGIN + "\n" + table_text + "\n" + END + rest.split(END, 1)[1]


def documents(path):
    """path: what it should hold."""
    first, found = read_csv(path)
    wanted = {"docs/images/compact.svg": picture(first, found)}
    peaks, limits = table(found, peak_text), table(found, limit_text)
    texts = {
        "README.md": peaks,
        "docs/compact.md": f"{peaks}\n\nThe smallest limit, over what lives, under which each "
        f"completes:\n\n{limits}\n\n({source(first)})",
    }
    for name, inner in texts.items():
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            wanted[name] = between(file.read(), inner)
    return wanted


def main(verb, *arguments):
    if verb == "csv":
        write_csv(*arguments)
        return 0
    wrong = 0
    for name, text in documents(*arguments).items():
        path = os.path.join(ROOT, name)
        held = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                held = file.read()
        if verb == "write":
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        elif held != text:
            wrong += 1
            print(f"{name} does not hold the figures of {arguments[0]}: run table.py write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
