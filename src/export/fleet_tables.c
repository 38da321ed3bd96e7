/* SPDX-License-Identifier: MIT */
/*
 * A fleet as tables. The number of a rank is that of its line, sorted, so equal fleets give equal
 * tables; stacks keep the hash by which lines name them, so that they can be compared between
 * exports. Lines were checked as far as reports need them; another value that is not of its kind is
 * an empty cell.
 */
#include "export/export_table.h"

#include "base/assertion.h"
#include "fleet/fleet_rows.h"
#include "fleet/rank_record.h"

#include <string.h>

#define NUMBER(name)  TN_COLUMN_OF_NUMBER(name)
#define ADDRESS(name) TN_COLUMN_OF_ADDRESS(name)
#define TEXT(name)    TN_COLUMN_OF_TEXT(name)
#define REAL(name)                                                                                 \
    {                                                                                              \
        name, TN_COLUMN_REAL                                                                       \
    }

static const struct tn_table ranks = {"ranks",
                                      TARN_TABLE_RANKS,
                                      34,
                                      {NUMBER("rank_id"),
                                       TEXT("file"),
                                       NUMBER("device"),
                                       TEXT("labels"),
                                       NUMBER("is_partial"),
                                       TEXT("settings"),
                                       NUMBER("events"),
                                       NUMBER("blocks"),
                                       NUMBER("requested_peak"),
                                       NUMBER("requested_peak_event"),
                                       NUMBER("left_out"),
                                       NUMBER("reserved_peak"),
                                       NUMBER("reserved_event"),
                                       NUMBER("allocated_peak"),
                                       NUMBER("allocations"),
                                       NUMBER("allocated"),
                                       NUMBER("segment_allocs"),
                                       NUMBER("segment_frees"),
                                       NUMBER("segment_maps"),
                                       NUMBER("segment_unmaps"),
                                       NUMBER("ooms"),
                                       TEXT("oom_verdict"),
                                       NUMBER("steps"),
                                       NUMBER("growth"),
                                       TEXT("grows_most"),
                                       NUMBER("end_reserved"),
                                       NUMBER("end_requested"),
                                       NUMBER("end_free"),
                                       NUMBER("end_largest_free"),
                                       NUMBER("end_releasable"),
                                       NUMBER("end_stuck"),
                                       NUMBER("is_outlier"),
                                       REAL("distance"),
                                       NUMBER("group_id")}};

static const struct tn_table holders = {"holders",
                                        TARN_TABLE_HOLDERS,
                                        7,
                                        {NUMBER("rank_id"), TEXT("instant"), TEXT("grouping"),
                                         ADDRESS("stack"), TEXT("name"), NUMBER("bytes"),
                                         NUMBER("blocks")}};

static const struct tn_table steps = {"steps",
                                      TARN_TABLE_STEPS,
                                      7,
                                      {NUMBER("rank_id"), NUMBER("step"), NUMBER("requested_peak"),
                                       NUMBER("end_requested"), NUMBER("reserved_peak"),
                                       NUMBER("allocations"), NUMBER("device_calls")}};

static const struct tn_table timeline = {
    "timeline",
    TARN_TABLE_TIMELINE,
    4,
    {NUMBER("rank_id"), NUMBER("part"), NUMBER("requested"), NUMBER("reserved")}};

static const struct tn_table ooms = {"ooms",
                                     TARN_TABLE_OOMS,
                                     6,
                                     {NUMBER("rank_id"), TEXT("verdict"), NUMBER("is_limited"),
                                      NUMBER("requests"), NUMBER("first_event"),
                                      NUMBER("request")}};

static const struct tn_table stacks = {
    "stacks",
    TARN_TABLE_STACKS,
    5,
    {ADDRESS("stack"), NUMBER("depth"), TEXT("name"), TEXT("filename"), NUMBER("line")}};

static const char sql[] =
    "CREATE INDEX holders_by_rank ON holders(rank_id);"
    "CREATE INDEX holders_by_stack ON holders(stack);"
    "CREATE INDEX steps_by_rank ON steps(rank_id, step);"
    "CREATE INDEX timeline_by_rank ON timeline(rank_id, part);"
    "CREATE INDEX stacks_by_stack ON stacks(stack, depth);"
    "CREATE VIEW frames AS SELECT stack, name, filename, line FROM stacks WHERE depth = 0;"
    "CREATE VIEW outliers AS SELECT rank_id, file, device, labels, requested_peak, reserved_peak,"
    " distance FROM ranks WHERE is_outlier ORDER BY distance DESC, requested_peak DESC, rank_id;"
    "CREATE VIEW like_ranks AS SELECT group_id, count(*) AS ranks, sum(is_outlier) AS outliers,"
    " min(requested_peak) AS least, max(requested_peak) AS most FROM ranks GROUP BY group_id;"
    "CREATE VIEW held_by_stack AS SELECT stack, name, count(*) AS ranks, min(bytes) AS least,"
    " max(bytes) AS most, sum(bytes) AS bytes FROM holders"
    " WHERE instant = 'requested_peak' AND grouping <> 'category' AND stack IS NOT NULL"
    " GROUP BY stack ORDER BY bytes DESC;";

/* What a walk works on. */
struct walk {
    struct tn_table_sink *sink;
    const struct tn_fleet_rows *rows;
    const struct tarn_export_options *options;
    struct tn_record_reader reader;
    struct tn_vec text; /* char: labels being written */
    bool out_of_memory;
};

/* A rank whose line is decoded. */
struct rank {
    size_t number;
    const struct tn_fleet_member *member;
    const struct tn_rank_record *record;
    const struct tn_json_value *line; /* what is in "rank" */
};

typedef bool rank_send(struct walk *walk, const struct rank *rank);

/* ---- cells ---- */

static struct tn_row row_begin(const struct tn_table *table, const struct rank *rank)
{
    struct tn_row row = {.table = table};

    tn_row_number(&row, rank->number);
    return row;
}

static void add_text(struct tn_row *row, const char *text, size_t length)
{
    if (text) {
        tn_row_cell(row, (struct tn_cell){.kind = TN_CELL_TEXT, .value = {.text = {text, length}}});
    } else {
        tn_row_none(row);
    }
}

static void add_json(struct tn_row *row, const struct tn_json_value *value)
{
    if (tn_json_is(value, TN_JSON_INTEGER)) {
        tn_row_signed(row, tn_json_integer(value));
    } else if (tn_json_is_bool(value)) {
        tn_row_number(row, tn_json_is(value, TN_JSON_TRUE));
    } else {
        add_text(row, tn_json_text(value), value ? value->count : 0);
    }
}

static void add_members(struct tn_row *row, const struct tn_json_value *object,
                        const char *const *keys)
{
    for (; *keys; keys++) {
        add_json(row, tn_json_get(object, *keys));
    }
}

static void add_items(struct tn_row *row, const struct tn_json_value *array, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add_json(row, tn_json_at(array, i));
    }
}

/* The label of a stack, as reports show it; the number is none where no line has that stack. */
static void add_stack(struct tn_row *row, const struct tn_fleet_rows *rows, uint64_t stack)
{
    const uint64_t *found = tn_map_find(&rows->stacks, stack);

    tn_row_number(row, stack);
    if (found) {
        const struct tn_name *name =
            tn_name_at(tn_ranks_names(rows->ranks), (uint32_t)(*found - 1));

        add_text(row, name->shown, name->shown_length);
    } else {
        tn_row_none(row);
    }
}

/* ---- ranks ---- */

static void add_peaks(struct tn_row *row, const struct rank *rank)
{
    static const char *const head[] = {"partial", "settings", "events", "blocks", NULL};
    static const char *const requested[] = {"requested", "event", "left_out", NULL};
    static const char *const reserved[] = {"reserved", "event", NULL};

    add_members(row, rank->line, head);
    add_members(row, tn_json_get(rank->line, "at"), requested);
    add_members(row, tn_json_get(rank->line, "reserved_peak"), reserved);
    add_json(row, tn_json_get(rank->line, "allocated_peak"));
}

static void add_counters(struct tn_row *row, const struct rank *rank)
{
    static const char *const counters[] = {
        "allocations",  "allocated",      "segment_allocs", "segment_frees",
        "segment_maps", "segment_unmaps", "ooms",           NULL};
    static const char *const frag[] = {"reserved",   "requested", "free", "largest_free",
                                       "releasable", "stuck",     NULL};
    const struct tn_json_value *causes = tn_json_get(rank->line, "ooms");
    const bool grows = rank->record->has_steps && rank->record->step_count > 1;

    add_members(row, tn_json_get(rank->line, "counters"), counters);
    add_json(row, tn_json_at(tn_json_at(causes, 0), 0));
    tn_row_number(row, rank->record->step_count);
    if (grows) {
        tn_row_signed(row, rank->record->growth);
        add_text(row, rank->member->stack, strlen(rank->member->stack));
    } else {
        tn_row_none(row);
        tn_row_none(row);
    }
    add_members(row, tn_json_get(rank->line, "frag"), frag);
}

static bool ranks_send(struct walk *walk, const struct rank *rank)
{
    const struct tn_fleet_member *member = rank->member;
    struct tn_row row = row_begin(&ranks, rank);

    if (!tn_labels_write(member->labels, member->label_count, &walk->text)) {
        walk->out_of_memory = true;
        return false;
    }
    add_text(&row, member->file, strlen(member->file));
    tn_row_signed(&row, member->device);
    add_text(&row, walk->text.items, walk->text.count);
    add_peaks(&row, rank);
    add_counters(&row, rank);
    tn_row_number(&row, member->is_outlier);
    tn_row_cell(&row, (struct tn_cell){.kind = TN_CELL_REAL, .value = {.real = member->distance}});
    tn_row_number(&row, member->group);
    return tn_row_send(walk->sink, &row);
}

/* ---- what is held ---- */

/* `from` is [stack, bytes, blocks], the stack a number in 16 digits. */
static bool holder_send(struct walk *walk, const struct rank *rank, const char *instant,
                        const struct tn_json_value *from)
{
    const struct tn_json_value *stack = tn_json_at(from, 0);
    struct tn_row row = row_begin(&holders, rank);
    uint64_t number;

    tn_row_word(&row, instant);
    tn_row_word(&row, tn_grouping_name(rank->record->by));
    if (tn_json_text(stack) && tn_hex_read(tn_json_text(stack), stack->count, &number)) {
        add_stack(&row, walk->rows, number);
    } else {
        tn_row_none(&row);
        tn_row_word(&row, "(smaller ones)");
    }
    add_json(&row, tn_json_at(from, 1));
    add_json(&row, tn_json_at(from, 2));
    return tn_row_send(walk->sink, &row);
}

static bool category_send(struct walk *walk, const struct rank *rank,
                          const struct tn_json_value *category)
{
    struct tn_row row = row_begin(&holders, rank);

    tn_row_word(&row, "requested_peak");
    tn_row_word(&row, "category");
    tn_row_none(&row);
    add_items(&row, category, 3);
    return tn_row_send(walk->sink, &row);
}

/* The rows, and the others if there are any: [groups, bytes, blocks]. */
static bool held_send(struct walk *walk, const struct rank *rank, const char *instant,
                      const struct tn_json_value *held)
{
    const struct tn_json_value *rows = tn_json_get(held, "rows");
    const struct tn_json_value *others = tn_json_get(held, "others");
    bool good = true;

    for (size_t i = 0; good && i < tn_json_length(rows); i++) {
        good = holder_send(walk, rank, instant, tn_json_at(rows, i));
    }
    return good && (tn_json_integer(tn_json_at(others, 0)) == 0 ||
                    holder_send(walk, rank, instant, others));
}

static bool holders_send(struct walk *walk, const struct rank *rank)
{
    const struct tn_json_value *categories = tn_json_get(rank->line, "categories");
    bool good =
        held_send(walk, rank, "requested_peak", tn_json_get(rank->line, "held")) &&
        held_send(walk, rank, "reserved_peak", tn_json_get(rank->line, "held_at_reserved_peak"));

    for (size_t i = 0; good && i < tn_json_length(categories); i++) {
        good = category_send(walk, rank, tn_json_at(categories, i));
    }
    return good;
}

/* ---- over time ---- */

/* The rows of a list in the line. */
static bool list_send(struct walk *walk, const struct rank *rank, const struct tn_table *table,
                      const struct tn_json_value *list)
{
    bool good = true;

    for (size_t i = 0; good && i < tn_json_length(list); i++) {
        struct tn_row row = row_begin(table, rank);

        add_items(&row, tn_json_at(list, i), table->column_count - 1);
        good = tn_row_send(walk->sink, &row);
    }
    return good;
}

static bool steps_send(struct walk *walk, const struct rank *rank)
{
    return list_send(walk, rank, &steps, tn_json_get(tn_json_get(rank->line, "steps"), "rows"));
}

static bool ooms_send(struct walk *walk, const struct rank *rank)
{
    return list_send(walk, rank, &ooms, tn_json_get(rank->line, "ooms"));
}

static bool timeline_send(struct walk *walk, const struct rank *rank)
{
    const struct tn_json_value *requested = tn_json_get(rank->line, "requested");
    const struct tn_json_value *reserved = tn_json_get(rank->line, "reserved");
    bool good = true;

    for (size_t i = 0; good && i < tn_json_length(requested); i++) {
        struct tn_row row = row_begin(&timeline, rank);

        tn_row_number(&row, i);
        add_json(&row, tn_json_at(requested, i));
        add_json(&row, tn_json_at(reserved, i));
        good = tn_row_send(walk->sink, &row);
    }
    return good;
}

/* ---- stacks ---- */

static bool frames_send(struct walk *walk, uint64_t stack, const struct tn_json_value *frames)
{
    bool good = true;

    for (size_t i = 0; good && i < tn_json_length(frames); i++) {
        struct tn_row row = {.table = &stacks};

        tn_row_number(&row, stack);
        tn_row_number(&row, i);
        add_items(&row, tn_json_at(frames, i), 3);
        good = tn_row_send(walk->sink, &row);
    }
    return good;
}

static bool stack_send(struct walk *walk, const struct tn_line *line)
{
    struct tn_json_tree *tree = &walk->reader.tree;
    const char *frames;
    size_t length;
    uint64_t stack;

    const bool good = tn_stack_line_check(line->text, line->length, &stack, &frames, &length);

    if (tn_never(!good)) { /* lines are checked when they are added */
        return true;
    }
    if (tn_json_parse(tree, frames, length, false, NULL)) {
        walk->out_of_memory = true; /* it was decoded once without an error */
        return false;
    }
    return frames_send(walk, stack, &tree->root);
}

static bool stacks_send(struct walk *walk)
{
    struct tn_vec sorted; /* struct tn_line */
    bool good = true;

    tn_vec_init(&sorted, sizeof(struct tn_line));
    if (!tn_fleet_sorted_stacks(walk->rows->fleet, &sorted)) {
        walk->out_of_memory = true;
        good = false;
    }
    for (size_t i = 0; good && i < sorted.count; i++) {
        good = stack_send(walk, (const struct tn_line *)sorted.items + i);
    }
    tn_vec_fini(&sorted);
    return good;
}

/* ---- all of it ---- */

/* A line is decoded once per table: trees of all would not fit in memory. */
static bool members_send(struct walk *walk, rank_send *send)
{
    const struct tn_line *lines = walk->rows->fleet->ranks.items;
    const struct tn_fleet_member *members = walk->rows->members.items;
    bool good = true;

    for (size_t i = 0; good && i < walk->rows->members.count; i++) {
        if (walk->options->one_device && walk->options->device != members[i].device) {
            continue;
        }
        if (tn_record_read(&walk->reader, lines[i].text, lines[i].length, NULL)) {
            walk->out_of_memory = true; /* it was decoded once without an error */
            return false;
        }
        const struct rank rank = {.number = i,
                                  .member = &members[i],
                                  .record = &walk->reader.record,
                                  .line = tn_json_get(&walk->reader.tree.root, "rank")};

        good = send(walk, &rank);
    }
    return good;
}

static bool tables_send(const struct tn_export *job, struct tn_table_sink *sink,
                        const struct tarn_export_options *options, bool *out_of_memory)
{
    static const struct {
        const struct tn_table *table;
        rank_send *send; /* NULL: the stacks */
    } all[] = {{&ranks, ranks_send},       {&holders, holders_send}, {&steps, steps_send},
               {&timeline, timeline_send}, {&ooms, ooms_send},       {&stacks, NULL}};
    struct walk walk = {.sink = sink, .rows = job->fleet, .options = options};
    bool good = true;

    tn_record_reader_init(&walk.reader);
    tn_vec_init(&walk.text, 1);
    for (size_t i = 0; good && i < sizeof all / sizeof *all; i++) {
        if (options->table == TARN_TABLE_ALL || options->table == all[i].table->id) {
            good = tn_table_begin(sink, all[i].table) &&
                   (all[i].send ? members_send(&walk, all[i].send) : stacks_send(&walk));
        }
    }
    tn_vec_fini(&walk.text);
    tn_record_reader_fini(&walk.reader);
    *out_of_memory = walk.out_of_memory;
    return good;
}

static size_t about(const struct tn_export *job, struct tn_about abouts[TN_ABOUTS_MAX])
{
    abouts[0] = (struct tn_about){
        "ranks", {.kind = TN_CELL_UNSIGNED, .value = {.number = job->fleet->members.count}}};
    return 1;
}

const struct tn_tables tn_fleet_tables = {
    .first = TARN_TABLE_RANKS, .sql = sql, .send = tables_send, .about = about};
