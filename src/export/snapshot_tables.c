/* SPDX-License-Identifier: MIT */
#include "export/export_table.h"

#include "analysis/timeline.h"
#include "base/assertion.h"

#include <inttypes.h>
#include <stdio.h>

#define NUMBER(name)  TN_COLUMN_OF_NUMBER(name)
#define ADDRESS(name) TN_COLUMN_OF_ADDRESS(name)
#define TEXT(name)    TN_COLUMN_OF_TEXT(name)
#define FRAME                                                                                      \
    {                                                                                              \
        "frame", TN_COLUMN_FRAME                                                                   \
    }

static const struct tn_table events = {
    "events",
    TARN_TABLE_EVENTS,
    15,
    {NUMBER("device"), NUMBER("event"), TEXT("action"), ADDRESS("address"), NUMBER("size"),
     NUMBER("device_free"), ADDRESS("stream"), NUMBER("time_us"), NUMBER("stack"), FRAME,
     TEXT("pool"), TEXT("compile_context"), TEXT("user_metadata"), TEXT("internal_metadata"),
     TEXT("category")}};

static const struct tn_table allocations = {
    "allocations",
    TARN_TABLE_ALLOCATIONS,
    10,
    {NUMBER("allocation"), NUMBER("device"), ADDRESS("address"), NUMBER("size"), ADDRESS("stream"),
     NUMBER("first_event"), NUMBER("free_event"), NUMBER("end_event"), NUMBER("stack"), FRAME}};

static const struct tn_table segments = {
    "segments",
    TARN_TABLE_SEGMENTS,
    13,
    {NUMBER("segment"), NUMBER("device"), ADDRESS("address"), NUMBER("total_size"),
     NUMBER("allocated_size"), NUMBER("active_size"), NUMBER("requested_size"), ADDRESS("stream"),
     TEXT("segment_type"), TEXT("pool"), NUMBER("is_expandable"), NUMBER("stack"), FRAME}};

static const struct tn_table blocks = {
    "blocks",
    TARN_TABLE_BLOCKS,
    9,
    {NUMBER("segment"), NUMBER("block"), NUMBER("device"), ADDRESS("address"), NUMBER("size"),
     NUMBER("requested_size"), TEXT("state"), NUMBER("stack"), FRAME}};

static const struct tn_table stacks = {
    "stacks",
    TARN_TABLE_STACKS,
    5,
    {NUMBER("stack"), NUMBER("depth"), TEXT("name"), TEXT("filename"), NUMBER("line")}};

static const struct tn_table annotations = {
    "annotations",
    TARN_TABLE_ANNOTATIONS,
    4,
    {NUMBER("device"), TEXT("stage"), TEXT("name"), NUMBER("time_us")}};

/* A row being assembled. */
struct row {
    const struct tn_model *model;
    struct tn_row out;
    char pool[48];
};

static void add_none(struct row *row)
{
    tn_row_none(&row->out);
}

static void add_number(struct row *row, uint64_t number)
{
    tn_row_number(&row->out, number);
}

/* None for TN_NEVER. */
static void add_event(struct row *row, uint64_t event)
{
    if (event == TN_NEVER) {
        add_none(row);
    } else {
        add_number(row, event);
    }
}

static void add_signed(struct row *row, int64_t number)
{
    tn_row_signed(&row->out, number);
}

static void add_time(struct row *row, int64_t time_us)
{
    if (time_us == TN_TIME_NONE) {
        add_none(row);
    } else {
        add_signed(row, time_us);
    }
}

static void add_word(struct row *row, const char *word)
{
    tn_row_word(&row->out, word);
}

/* None where the key was absent. */
static void add_string(struct row *row, uint32_t string)
{
    if (string == TN_STRING_NONE) {
        add_none(row);
    } else {
        tn_row_cell(&row->out,
                    (struct tn_cell){.kind = TN_CELL_STRING, .value = {.number = string}});
    }
}

/* The number of the stack, and its innermost frame. */
static void add_stack(struct row *row, uint32_t stack)
{
    const struct tn_stack frames = tn_model_stack(row->model, stack);

    if (frames.count == 0) {
        add_none(row);
        add_none(row);
        return;
    }
    add_number(row, stack);
    tn_row_cell(&row->out,
                (struct tn_cell){.kind = TN_CELL_FRAME, .value = {.number = frames.frames[0]}});
}

static void add_pool(struct row *row, struct tn_pool_id pool)
{
    (void)snprintf(row->pool, sizeof row->pool, "%" PRIu64 ",%" PRIu64, pool.id[0], pool.id[1]);
    add_word(row, row->pool);
}

/* What a walk works on. */
struct walk {
    struct tn_table_sink *sink;
    const struct tn_model *model;
    const struct tarn_export_options *options;
    uint64_t allocations; /* sent */
    bool out_of_memory;
};

static bool device_is_wanted(const struct walk *walk, int64_t device)
{
    return !walk->options->one_device || walk->options->device == device;
}

static struct row row_begin(const struct walk *walk, const struct tn_table *table)
{
    return (struct row){.model = walk->model, .out = {.table = table}};
}

static bool row_send(const struct walk *walk, const struct row *row)
{
    return tn_row_send(walk->sink, &row->out);
}

/* ---- traces ---- */

static bool event_send(const struct walk *walk, size_t device, uint64_t number,
                       const struct tn_trace_entry *entry)
{
    const struct tn_trace_extra *extra = tn_model_extra(walk->model, entry->extra);
    const bool is_oom = entry->action == TN_TRACE_OOM;
    struct row row = row_begin(walk, &events);

    add_number(&row, device);
    add_number(&row, number);
    if (entry->action == TN_TRACE_OTHER) {
        add_string(&row, extra->action_name);
    } else {
        add_word(&row, tn_trace_action_name((enum tn_trace_action)entry->action));
    }
    add_event(&row, is_oom ? TN_NEVER : entry->address);
    add_number(&row, entry->size);
    add_event(&row, is_oom ? entry->address : TN_NEVER);
    add_number(&row, entry->stream);
    add_time(&row, entry->time_us);
    add_stack(&row, entry->stack);
    if (extra->has_pool) {
        add_pool(&row, extra->pool);
    } else {
        add_none(&row);
    }
    add_string(&row, extra->compile_context);
    add_string(&row, extra->user_metadata);
    add_string(&row, extra->internal_metadata);
    add_string(&row, extra->category);
    return row_send(walk, &row);
}

static bool events_send(struct walk *walk)
{
    for (size_t device = 0; device < walk->model->trace_count; device++) {
        const struct tn_trace *trace = &walk->model->traces[device];

        for (uint64_t i = 0; device_is_wanted(walk, (int64_t)device) && i < trace->count; i++) {
            if (!event_send(walk, device, i, tn_trace_at(walk->model, trace, i))) {
                return false;
            }
        }
    }
    return true;
}

static bool lifetime_send(struct walk *walk, size_t device, const struct tn_lifetime *lifetime)
{
    struct row row = row_begin(walk, &allocations);

    add_number(&row, walk->allocations++);
    add_number(&row, device);
    add_number(&row, lifetime->address);
    add_number(&row, lifetime->size);
    add_number(&row, lifetime->stream);
    add_event(&row, lifetime->start);
    add_event(&row, lifetime->requested);
    add_event(&row, lifetime->end);
    add_stack(&row, lifetime->stack);
    return row_send(walk, &row);
}

static bool lifetimes_send(struct walk *walk, size_t device)
{
    struct tn_timeline timeline;
    bool good = true;

    if (!tn_timeline_init(&timeline, walk->model, device)) {
        walk->out_of_memory = true;
        return false;
    }
    for (size_t i = 0; good && i < timeline.lifetimes.count; i++) {
        good = lifetime_send(walk, device, &tn_timeline_lifetimes(&timeline)[i]);
    }
    tn_timeline_fini(&timeline);
    return good;
}

static bool allocations_send(struct walk *walk)
{
    for (size_t device = 0; device < walk->model->trace_count; device++) {
        if (device_is_wanted(walk, (int64_t)device) && walk->model->traces[device].count > 0 &&
            !lifetimes_send(walk, device)) {
            return false;
        }
    }
    return true;
}

/* ---- segments ---- */

static bool segment_send(const struct walk *walk, size_t number)
{
    const struct tn_model_segment *segment = &walk->model->segments[number];
    struct row row = row_begin(walk, &segments);

    add_number(&row, number);
    add_signed(&row, segment->device);
    add_number(&row, segment->address);
    add_number(&row, segment->total_size);
    add_number(&row, segment->allocated_size);
    add_number(&row, segment->active_size);
    add_number(&row, segment->requested_size);
    add_number(&row, segment->stream);
    add_word(&row, segment->is_large ? "large" : "small");
    add_pool(&row, segment->pool);
    add_number(&row, segment->is_expandable);
    add_stack(&row, segment->stack);
    return row_send(walk, &row);
}

static bool segments_send(struct walk *walk)
{
    for (size_t i = 0; i < walk->model->segment_count; i++) {
        if (device_is_wanted(walk, walk->model->segments[i].device) && !segment_send(walk, i)) {
            return false;
        }
    }
    return true;
}

/* The stack of a block; in the old format that of its newest allocation. */
static uint32_t block_stack(const struct tn_model_block *block)
{
    return block->stack == TN_STACK_NONE && block->history_count > 0 ? block->history[0].stack
                                                                     : block->stack;
}

static bool block_send(const struct walk *walk, size_t segment, size_t number)
{
    const struct tn_model_block *block = &walk->model->segments[segment].blocks[number];
    struct row row = row_begin(walk, &blocks);

    add_number(&row, segment);
    add_number(&row, number);
    add_signed(&row, walk->model->segments[segment].device);
    add_number(&row, block->address);
    add_number(&row, block->size);
    add_number(&row, block->requested_size);
    add_word(&row, tn_block_state_name((enum tn_block_state)block->state));
    add_stack(&row, block_stack(block));
    return row_send(walk, &row);
}

static bool blocks_send(struct walk *walk)
{
    for (size_t i = 0; i < walk->model->segment_count; i++) {
        const struct tn_model_segment *segment = &walk->model->segments[i];

        for (size_t k = 0; device_is_wanted(walk, segment->device) && k < segment->block_count;
             k++) {
            if (!block_send(walk, i, k)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- what is shared ---- */

static bool frame_send(const struct walk *walk, uint64_t stack, uint32_t depth,
                       const struct tn_frame *frame)
{
    struct row row = row_begin(walk, &stacks);

    add_number(&row, stack);
    add_number(&row, depth);
    add_string(&row, frame->name);
    add_string(&row, frame->filename);
    add_signed(&row, frame->line);
    return row_send(walk, &row);
}

static bool stacks_send(struct walk *walk)
{
    for (uint64_t i = 0; i < walk->model->stacks.count; i++) {
        const struct tn_stack stack = tn_model_stack(walk->model, (uint32_t)i);

        for (uint32_t k = 0; k < stack.count; k++) {
            if (!frame_send(walk, i, k, tn_model_frame(walk->model, stack.frames[k]))) {
                return false;
            }
        }
    }
    return true;
}

static bool annotations_send(struct walk *walk)
{
    for (size_t i = 0; i < walk->model->annotation_count; i++) {
        const struct tn_annotation *annotation = &walk->model->annotations[i];
        struct row row = row_begin(walk, &annotations);

        add_signed(&row, annotation->device);
        add_string(&row, annotation->stage);
        add_string(&row, annotation->name);
        add_time(&row, annotation->time_us);
        if (device_is_wanted(walk, annotation->device) && !row_send(walk, &row)) {
            return false;
        }
    }
    return true;
}

/* ---- all of them ---- */

static bool tables_send(const struct tn_export *job, struct tn_table_sink *sink,
                        const struct tarn_export_options *options, bool *out_of_memory)
{
    static const struct {
        const struct tn_table *table;
        bool (*send)(struct walk *walk);
    } rows[] = {{&events, events_send},     {&allocations, allocations_send},
                {&segments, segments_send}, {&blocks, blocks_send},
                {&stacks, stacks_send},     {&annotations, annotations_send}};
    struct walk walk = {.sink = sink, .model = job->model, .options = options};
    bool good = true;

    for (size_t i = 0; good && i < sizeof rows / sizeof *rows; i++) {
        if (options->table == TARN_TABLE_ALL || options->table == rows[i].table->id) {
            good = tn_table_begin(sink, rows[i].table) && rows[i].send(&walk);
        }
    }
    *out_of_memory = walk.out_of_memory;
    return good;
}

static size_t about(const struct tn_export *job, struct tn_about abouts[TN_ABOUTS_MAX])
{
    abouts[0] = (struct tn_about){
        "is_partial", {.kind = TN_CELL_UNSIGNED, .value = {.number = job->model->is_partial}}};
    abouts[1] = (struct tn_about){
        "settings", {.kind = TN_CELL_STRING, .value = {.number = job->model->settings.conf}}};
    return 2;
}

static const char sql[] =
    "CREATE INDEX events_by_address ON events(device, address);"
    "CREATE INDEX allocations_by_stack ON allocations(stack);"
    "CREATE INDEX blocks_by_segment ON blocks(segment);"
    "CREATE INDEX stacks_by_stack ON stacks(stack, depth);"
    "CREATE VIEW frames AS SELECT stack, name, filename, line FROM stacks WHERE depth = 0;"
    "CREATE VIEW folded AS SELECT stack, group_concat(name, ';') AS frames FROM"
    " (SELECT stack, name FROM stacks ORDER BY stack, depth DESC) GROUP BY stack;"
    "CREATE VIEW live AS SELECT b.device, printf('0x%x', b.address) AS address, b.size,"
    " b.requested_size, b.state, b.stack, f.name, f.filename, f.line"
    " FROM blocks b LEFT JOIN frames f USING (stack) WHERE b.state <> 'inactive';"
    "CREATE VIEW live_by_stack AS SELECT device, stack, name, filename, line, count(*) AS blocks,"
    " sum(size) AS bytes FROM live GROUP BY device, stack ORDER BY bytes DESC;"
    "CREATE VIEW asked_by_stack AS SELECT a.device, a.stack, f.name, f.filename, f.line,"
    " count(*) AS allocations, sum(a.size) AS bytes, avg(a.end_event - a.first_event) AS "
    "mean_lifetime"
    " FROM allocations a LEFT JOIN frames f USING (stack) WHERE a.first_event IS NOT NULL"
    " GROUP BY a.device, a.stack ORDER BY bytes DESC;"
    "CREATE VIEW segment_use AS SELECT s.segment, s.device, printf('0x%x', s.address) AS address,"
    " s.total_size, s.active_size, s.total_size - s.active_size AS free,"
    " coalesce(max(b.size) FILTER (WHERE b.state = 'inactive'), 0) AS largest_free,"
    " count(b.block) FILTER (WHERE b.state <> 'inactive') AS blocks, s.segment_type, s.pool,"
    " s.stream FROM segments s LEFT JOIN blocks b USING (segment) GROUP BY s.segment;"
    "CREATE VIEW ooms AS SELECT device, event, time_us, size AS request, device_free, stack"
    " FROM events WHERE action = 'oom';";

const struct tn_tables tn_snapshot_tables = {
    .first = TARN_TABLE_EVENTS, .sql = sql, .send = tables_send, .about = about};
