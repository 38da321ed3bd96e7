/* SPDX-License-Identifier: MIT */
/*
 * Reads a file of summaries. Its lines are checked one by one and kept apart until the last one,
 * which has a hash of all before it, says that the file is whole.
 */
#include "fleet/fleet.h"
#include "fleet/rank_record.h"

#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/input_line.h"

#include <string.h>

static const uint64_t bytes_max = (uint64_t)16 << 30;
static const uint64_t memory_max = (uint64_t)2 << 30;

enum {
    RATIO_MAX = 2000,
    RANKS_MAX = 1 << 24
};

/* A file being read. */
struct reading {
    struct tarn_fleet *fleet;
    struct tn_input input;
    struct tn_record_reader record;
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_vec stacks; /* struct tn_line, those that the fleet does not have yet */
    struct tn_vec ranks;  /* struct tn_line */
    uint64_t number;      /* of the line */
    uint64_t hash;
    bool has_ended;
};

static void reading_init(struct reading *reading, struct tarn_fleet *fleet, uint64_t max_memory)
{
    fleet->budget.limit = max_memory ? max_memory : memory_max;
    reading->fleet = fleet;
    reading->hash = TN_STABLE_HASH_BEGIN;
    reading->budget = (struct tn_budget){.limit = fleet->budget.limit};
    tn_record_reader_init(&reading->record);
    tn_arena_init(&reading->arena, &reading->budget);
    tn_vec_init(&reading->stacks, sizeof(struct tn_line));
    tn_vec_init(&reading->ranks, sizeof(struct tn_line));
}

static void reading_fini(struct reading *reading)
{
    tn_vec_fini(&reading->ranks);
    tn_vec_fini(&reading->stacks);
    tn_arena_fini(&reading->arena);
    tn_record_reader_fini(&reading->record);
}

static enum tarn_status memory_fail(const struct tn_budget *budget, struct tarn_error *error)
{
    return tn_budget_status(budget) == TARN_ERR_LIMIT
               ? tn_fail(error, TARN_ERR_LIMIT, "the summaries need more memory than the limit")
               : tn_fail_memory(error);
}

/* ---- lines ---- */

static enum tarn_status line_keep(struct reading *reading, struct tn_vec *lines, const char *text,
                                  size_t length, struct tarn_error *error)
{
    const struct tn_line line = {tn_arena_copy(&reading->arena, text, length, 1), length};

    if (line.text && tn_vec_append(lines, &line, 1)) {
        return TARN_OK;
    }
    return line.text ? tn_fail_memory(error) : memory_fail(&reading->budget, error);
}

static enum tarn_status head_check(const char *line, size_t length, struct tarn_error *error)
{
    const size_t begin = sizeof TN_SUMMARY_HEAD - 1;
    uint64_t version = 0;
    size_t at = begin;

    if (!tn_line_begins(line, length, TN_SUMMARY_HEAD)) {
        return tn_fail_at(error, TARN_ERR_FORMAT, 0, "not a summary: the first line is another");
    }
    while (at < length && line[at] >= '0' && line[at] <= '9' && version < UINT32_MAX) {
        version = version * 10 + (uint64_t)(line[at++] - '0');
    }
    if (version == TN_SUMMARY_VERSION && at + 1 == length && line[at] == '}') {
        return TARN_OK;
    }
    return tn_fail_at(error, TARN_ERR_FORMAT, 0,
                      "a summary of version %llu; this program reads version %d",
                      (unsigned long long)version, TN_SUMMARY_VERSION);
}

static enum tarn_status line_fail(const struct reading *reading, enum tarn_status status,
                                  const char *what, struct tarn_error *error)
{
    return tn_fail(error, status, "line %llu of the summary: %s",
                   (unsigned long long)reading->number, what);
}

/* The frames must be JSON; what kind of frames is seen when a report uses them. */
static enum tarn_status stack_take(struct reading *reading, const char *line, size_t length,
                                   struct tarn_error *error)
{
    const char *frames;
    size_t frames_length;
    uint64_t id;

    if (tn_fleet_has_stack(reading->fleet, line, length)) {
        return TARN_OK; /* those of the fleet were checked: so are their equals, which are many */
    }
    if (!tn_stack_line_check(line, length, &id, &frames, &frames_length)) {
        return line_fail(reading, TARN_ERR_FORMAT, "a stack that is damaged", error);
    }
    struct tarn_error why;
    const enum tarn_status status =
        tn_json_parse(&reading->record.tree, frames, frames_length, false, &why);

    if (status) {
        return line_fail(reading, status == TARN_ERR_TRUNCATED ? TARN_ERR_FORMAT : status, why.text,
                         error);
    }
    return line_keep(reading, &reading->stacks, line, length, error);
}

static enum tarn_status rank_take(struct reading *reading, const char *line, size_t length,
                                  struct tarn_error *error)
{
    struct tarn_error why;
    const enum tarn_status status = tn_record_read(&reading->record, line, length, &why);

    if (status) {
        return line_fail(reading, status, why.text, error);
    }
    if (reading->fleet->ranks.count + reading->ranks.count >= RANKS_MAX) {
        return line_fail(reading, TARN_ERR_LIMIT, "too many ranks", error);
    }
    return line_keep(reading, &reading->ranks, line, length, error);
}

static enum tarn_status end_take(struct reading *reading, const char *line, size_t length,
                                 struct tarn_error *error)
{
    const size_t begin = sizeof TN_SUMMARY_END - 1;
    uint64_t hash;

    if (length != begin + 18 || !tn_hex_read(line + begin, 16, &hash) ||
        memcmp(line + begin + 16, "\"}", 2) != 0 || hash != reading->hash) {
        return line_fail(reading, TARN_ERR_FORMAT,
                         "the file is damaged: its checksum is that of other contents", error);
    }
    reading->has_ended = true;
    return TARN_OK;
}

static enum tarn_status line_take(struct reading *reading, const char *line, size_t length,
                                  struct tarn_error *error)
{
    enum tarn_status status;

    reading->number++;
    if (reading->number == 1) {
        status = head_check(line, length, error);
    } else if (reading->has_ended) {
        status = line_fail(reading, TARN_ERR_FORMAT, "there is more after the end", error);
    } else if (tn_line_begins(line, length, TN_SUMMARY_END)) {
        return end_take(reading, line, length, error);
    } else if (tn_line_begins(line, length, TN_SUMMARY_STACK)) {
        status = stack_take(reading, line, length, error);
    } else if (tn_line_begins(line, length, TN_SUMMARY_RANK)) {
        status = rank_take(reading, line, length, error);
    } else {
        status = line_fail(reading, TARN_ERR_FORMAT, "neither a stack nor a rank", error);
    }
    reading->hash = tn_line_hash(reading->hash, line, length);
    return status;
}

/* ---- files ---- */

static enum tarn_status lines_read(struct reading *reading, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    const char *line;
    size_t length;

    while (status == TARN_OK) {
        status = tn_input_line(&reading->input, TN_LINE_MAX, &line, &length, error);
        if (status == TARN_OK) {
            status = line_take(reading, line, length, error);
        }
    }
    if (status != TARN_ERR_NOT_FOUND) {
        return status;
    }
    if (reading->number == 0) {
        return tn_fail_at(error, TARN_ERR_FORMAT, 0, "not a summary: the file is empty");
    }
    return reading->has_ended
               ? TARN_OK
               : tn_fail(error, TARN_ERR_TRUNCATED, "the summary ends early, after line %llu",
                         (unsigned long long)reading->number);
}

static enum tarn_status lines_add(struct reading *reading, struct tarn_error *error)
{
    struct tarn_fleet *fleet = reading->fleet;
    const struct tn_line *stacks = reading->stacks.items;
    const struct tn_line *ranks = reading->ranks.items;
    const size_t stacks_before = fleet->stacks.count;
    const size_t ranks_before = fleet->ranks.count;
    bool good = true;

    for (size_t i = 0; good && i < reading->stacks.count; i++) {
        good = tn_fleet_add_stack(fleet, stacks[i].text, stacks[i].length);
    }
    for (size_t i = 0; good && i < reading->ranks.count; i++) {
        good = tn_fleet_add_rank(fleet, ranks[i].text, ranks[i].length);
    }
    if (!good) {
        tn_fleet_cut(fleet, stacks_before, ranks_before);
        return memory_fail(&fleet->budget, error);
    }
    return TARN_OK;
}

static struct tn_unpack_limits unpack_limits(const struct tarn_read_limits *limits)
{
    return (struct tn_unpack_limits){
        .max_bytes = limits && limits->max_bytes ? limits->max_bytes : bytes_max,
        .max_ratio = limits && limits->max_ratio ? limits->max_ratio : RATIO_MAX};
}

/* The input is open. */
static enum tarn_status input_read(struct reading *reading, struct tarn_fleet *fleet,
                                   const struct tarn_read_limits *limits, struct tarn_error *error)
{
    reading_init(reading, fleet, limits ? limits->max_memory : 0);
    enum tarn_status status = lines_read(reading, error);

    status = status ? status : lines_add(reading, error);
    reading_fini(reading);
    tn_input_close(&reading->input);
    return status;
}

enum tarn_status tarn_fleet_load(struct tarn_fleet *fleet, const char *path,
                                 const struct tarn_read_limits *limits, struct tarn_error *error)
{
    const struct tn_unpack_limits unpack = unpack_limits(limits);
    struct reading reading = {0};
    const enum tarn_status status = tn_input_open(&reading.input, path, &unpack, error);

    return status ? status : input_read(&reading, fleet, limits, error);
}

enum tarn_status tarn_fleet_load_memory(struct tarn_fleet *fleet, const void *bytes, size_t size,
                                        const struct tarn_read_limits *limits,
                                        struct tarn_error *error)
{
    const struct tn_unpack_limits unpack = unpack_limits(limits);
    struct reading reading = {0};
    const enum tarn_status status =
        tn_input_open_memory(&reading.input, bytes, size, &unpack, error);

    return status ? status : input_read(&reading, fleet, limits, error);
}

bool tarn_fleet_is_summary(const char *path)
{
    static const char begin[] = TN_SUMMARY_HEAD;
    const struct tn_unpack_limits limits = unpack_limits(NULL);
    struct tn_input input;
    bool is = false;

    if (strcmp(path, "-") == 0 || tn_input_open(&input, path, &limits, NULL)) {
        return false;
    }
    if (tn_input_need(&input, sizeof begin - 1, NULL) == TARN_OK) {
        is = memcmp(input.at, begin, sizeof begin - 1) == 0;
    }
    tn_input_close(&input);
    return is;
}
