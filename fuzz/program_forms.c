/* SPDX-License-Identifier: MIT */
#include "program_forms.h"

#include <stddef.h>

/* Of reports that select blocks and group them. */
#define SELECTION                                                                                  \
    "--device 0", "--device 1", "--stream 1", "--pool private", "--pool 0,1", "--min-size 1KiB",   \
        "--max-size 1GiB", "--match forward", "--annotation step", "--where size>=513",            \
        "--where lifetime>3||frame~torch", "--where freed&&start<100", "--events 1..20",           \
        "--events ..3", "--time 0..0.001", "--step 1..2", "--at event:3", "--at end",              \
        "--at start", "--at reserved-peak", "--at oom", "--at time:0.0001", "--frames python",     \
        "--frames cpp", "--hide torch", "--depth 1", "--by frame", "--by function", "--by file",   \
        "--by line", "--by category", "--by stream", "--by pool", "--by segment", "--by size",     \
        "--by annotation", "--by metadata", "--by compile", "--by module", "--units si"

#define ROWS "--json", "--jsonl", "--csv", "--rows 2", "--rows 1000"

#define CONFS                                                                                      \
    "--conf expandable_segments:True", "--conf expandable_segments:True,large_segment_size_mb:12", \
        "--conf expandable_segments:True,large_segment_size_mb:40",                                \
        "--conf expandable_segments:False", "--conf backend:cudaMallocAsync",                      \
        "--conf large_segment_size_mb:11", "--conf roundup_power2_divisions:4",                    \
        "--conf max_split_size_mb:21,garbage_collection_threshold:0.4",                            \
        "--conf per_process_memory_fraction:0.5"

static const char *const none[] = {NULL};
static const char *const report[] = {SELECTION, ROWS, NULL};
static const char *const tree[] = {SELECTION, ROWS, "--tree", "--min-share 10", NULL};
static const char *const top[] = {SELECTION, ROWS, "--sort end", "--sort count", "--tree", NULL};
static const char *const churn[] = {SELECTION, ROWS, "--max-lifetime 3", NULL};
static const char *const leaks[] = {SELECTION, ROWS, "--steps 2", "--fail", NULL};
static const char *const summary[] = {"--json", "--md", "--device 1", "--reserve 0", NULL};
static const char *const steps[] = {SELECTION, ROWS, "--parts 3", NULL};
static const char *const oom[] = {SELECTION, ROWS, "--device-total 80GiB", NULL};
static const char *const diff[] = {
    SELECTION,         ROWS, "--to end", "--ignore-lines", "--strip-prefix /usr", "--folded",
    "--fail-above 1%", NULL};
static const char *const flame[] = {SELECTION,  "--from start",  "--inverted",
                                    "--folded", "--shape flame", NULL};
static const char *const walk[] = {"--device 1",
                                   "--stream 1",
                                   "--where size>=513",
                                   "--at end",
                                   "--at oom",
                                   "--by module",
                                   "--by stream",
                                   "--by category",
                                   "--by category --where freed",
                                   "--sort name",
                                   "--depth 1",
                                   "--min-share 0",
                                   "--units bytes",
                                   NULL};
static const char *const info[] = {SELECTION, "--json", NULL};
static const char *const json[] = {"--json", NULL};
static const char *const folded[] = {"--folded", "--device 0", NULL};
static const char *const trace[] = {"--compat", "--device 1", NULL};
static const char *const replay[] = {CONFS,
                                     "--conf expandable_segments:True --conf backend:native",
                                     "--memory-limit 64MiB",
                                     "--json",
                                     "--device-total 2GiB",
                                     "--no-limit",
                                     "--check",
                                     "--base-address 0x10000000000",
                                     "--summary",
                                     "-o @O",
                                     "--device 1",
                                     NULL};
static const char *const tune[] = {"--each", "--goal capacity", "--goal device-calls",
                                   "--json", "--limit 100MiB",  NULL};
static const char *const fit[] = {CONFS, "--card 1GiB,H200", "--reserve 1MiB", "--json", NULL};
static const char *const scale[] = {CONFS,
                                    "--pools 3,30",
                                    "--factor all=3",
                                    "--factor batch=1.1,7",
                                    "--json",
                                    "--match forward=2",
                                    "--card 1GiB,H200",
                                    "--no-limit",
                                    "--memory-limit 50MiB",
                                    "--factor all=1e9",
                                    "--factor activation=2",
                                    NULL};
static const char *const export_form[] = {"--to jsonl",
                                          "--to csv",
                                          "--to csv --table allocations",
                                          "--to csv --table segments",
                                          "--to csv --table blocks",
                                          "--to csv --table stacks",
                                          "--to csv --table annotations",
                                          "--to folded",
                                          NULL};
static const char *const export_ranks[] = {"--table ranks",
                                           "--table holders",
                                           "--table steps",
                                           "--table timeline",
                                           "--table ooms",
                                           "--table stacks",
                                           NULL};
static const char *const export_json[] = {"--device 0", NULL};
static const char *const trim[] = {"--anonymize", "--drop-cpp", "--events ..3",     "--events 2..",
                                   "--device 0",  "--device 1", "--time 0..0.0001", NULL};
static const char *const view[] = {"--redact paths",    "--redact all", "--device 1",
                                   "--max-size 100KiB", "--title <b>",  NULL};
static const char *const view_ranks[] = {"--title <b>", "--device-total 1GiB", "--since-step 1",
                                         "--pages .",   "--labels @B",         NULL};
/* What is asked for is printed one after the other: with --json it would not be JSON alone. */
static const char *const track[] = {
    "--modulewise", "--tree",         "--iterations",     "--units MiB",       "--depth 1",
    "--tabulate",   "--display peak", "--display moment", "--display current", NULL};
static const char *const track_json[] = {"--everything", "--units MiB", NULL};

const struct command_form command_forms[] = {
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "info @A", info},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "info --strict -v @A", info},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "summary @A", summary},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "check @A", json},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "stats @A", none},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "trace @A", trace},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "top @A", top},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "peak @A", tree},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "live @A", tree},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "oom @A", oom},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "frag @A", report},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "churn @A", churn},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "leaks @A", leaks},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "steps @A", steps},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "diff @A @B", diff},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "ranks @A @B @A", report},
    {FORM_READS_SNAPSHOTS, OUTPUT_BYTES, "summarize @A @B -o @O", none},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "flame @A -o @O", flame},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "tree --once @A", walk},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "memory @A -o @O", folded},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "segments @A -o @O", folded},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "compare @A @B -o @O", folded},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "export @A", export_form},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "export --to csv @A @B", export_ranks},
    {FORM_READS_SNAPSHOTS, OUTPUT_JSON, "export --to json @A", none},
    {FORM_READS_SNAPSHOTS, OUTPUT_JSON, "export --to perfetto @A", export_json},
    {FORM_READS_SNAPSHOTS, OUTPUT_JSON, "export --to speedscope @A", export_json},
    {FORM_READS_SNAPSHOTS, OUTPUT_BYTES, "export --to sqlite @A -o @O", none},
    {FORM_READS_SNAPSHOTS, OUTPUT_BYTES, "view @A -o @O", view},
    {FORM_READS_SNAPSHOTS, OUTPUT_BYTES, "view @A @B -o @O", view},
    {FORM_READS_SNAPSHOTS, OUTPUT_BYTES, "view --ranks @A @B @A -o @O", view_ranks},
    {FORM_READS_SNAPSHOTS, OUTPUT_BYTES, "convert @A @O", none},
    {FORM_READS_SNAPSHOTS, OUTPUT_BYTES, "trim @A @O", trim},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "replay @A", replay},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "tune --threads 1 --tries 20 @A", tune},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "fit @A", fit},
    {FORM_READS_SNAPSHOTS, OUTPUT_TEXT, "scale @A", scale},
    {FORM_READS_TRACK, OUTPUT_TEXT, "track @A", track},
    {FORM_READS_TRACK, OUTPUT_JSON, "track --json @A", track_json},
    {FORM_READS_TRACK, OUTPUT_TEXT, "track --after @A", none},
    {FORM_READS_DECISIONS, OUTPUT_TEXT, "verify @A", none},
    {FORM_READS_DECISIONS, OUTPUT_TEXT, "replay @A", replay},
    {FORM_READS_PROFILE, OUTPUT_BYTES, "profile @A -", none},
    {FORM_READS_PROFILE, OUTPUT_BYTES, "profile -f @A @O", none},
    {0, OUTPUT_BYTES, NULL, NULL},
};
