/* SPDX-License-Identifier: MIT */
/* What expressions say of blocks: of a few that are known, and of recorded ones against a second,
 * slow evaluation of the same random expressions. */
#include "support/report.h"

#include "analysis/analysis.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>

/* Blocks by their size: 100 from before the trace, 1000 (freed after 50 us and 6 entries), 20 in a
 * private pool, 3072 while "load#1" is open, 5 with metadata set later, 7 at the end. */
static const char mixed[] =
    "{'segments': ["
    "{'address': 4096, 'total_size': 65536, 'device': 0, 'stream': 0, 'segment_pool_id': [0, 0],"
    " 'blocks': [{'address': 4096, 'size': 512, 'requested_size': 100, 'state': 'active_allocated',"
    "  'frames': []},{'address': 4608, 'size': 65024, 'state': 'inactive', 'frames': []}]},"
    "{'address': 131072, 'total_size': 65536, 'device': 0, 'stream': 7, 'segment_pool_id': [0, 3],"
    " 'blocks': [{'address': 131072, 'size': 65536, 'state': 'inactive', 'frames': []}]}],"
    "'external_annotations': ["
    "{'stage': 'START', 'name': 'ProfilerStep#4', 'device': 0, 'time_us': 1025},"
    "{'stage': 'START', 'name': 'load#1', 'device': 0, 'time_us': 1028},"
    "{'stage': 'END', 'name': 'load#1', 'device': 0, 'time_us': 1032},"
    "{'stage': 'END', 'name': 'ProfilerStep#4', 'device': 0, 'time_us': 1055}],"
    "'device_traces': [["
    "{'action': 'alloc', 'addr': 8192, 'size': 1000, 'stream': 0, 'time_us': 1010, 'frames': ["
    " {'name': 'at::empty', 'filename': 'Empty.cpp', 'line': 9},"
    " {'name': 'inner', 'filename': '/u/a.py', 'line': 1},"
    " {'name': 'outer', 'filename': '/u/torch/optim/b.py', 'line': 2}]},"
    "{'action': 'alloc', 'addr': 131072, 'size': 20, 'stream': 7, 'time_us': 1020, 'frames': ["
    " {'name': 'at::empty', 'filename': 'Empty.cpp', 'line': 9},"
    " {'name': 'inner', 'filename': '/u/a.py', 'line': 1}]},"
    "{'action': 'alloc', 'addr': 16384, 'size': 3072, 'stream': 0, 'time_us': 1030, 'frames': ["
    " {'name': 'load', 'filename': '/u/ba.py', 'line': 3}], 'compile_context': '0/0'},"
    "{'action': 'alloc', 'addr': 32768, 'size': 5, 'stream': 0, 'time_us': 1040, 'frames': []},"
    "{'action': 'annotate', 'addr': 32768, 'size': 5, 'stream': 0, 'time_us': 1041, 'frames': [],"
    " 'user_metadata': 'kv_cache'},"
    "{'action': 'free_requested', 'addr': 8192, 'size': 1000, 'stream': 0, 'time_us': 1050},"
    "{'action': 'free_completed', 'addr': 8192, 'size': 1000, 'stream': 0, 'time_us': 1060},"
    "{'action': 'alloc', 'addr': 49152, 'size': 7, 'stream': 0, 'time_us': 1070, 'frames': []}]]}";

enum {
    ALL = 100 + 1000 + 20 + 3072 + 5 + 7
};

/* A trace and an expression, ready to be asked. */
struct asking {
    struct tn_query query;
    struct tn_analysis analysis;
    struct tarn_where *where;
};

static enum tarn_status asking_init(struct asking *asking, const struct tarn_snapshot *snapshot,
                                    const char *text, struct tarn_error *error)
{
    struct tarn_selection selection = {.struct_size = sizeof selection};
    struct tarn_report_options options = {.struct_size = sizeof options, .selection = &selection};
    enum tarn_status status = tarn_where_parse(text, &asking->where, error);

    if (status) {
        return status;
    }
    selection.where = asking->where;
    status = tn_query_init(&asking->query, tn_snapshot_model(snapshot), &options, error);
    if (status == TARN_OK) {
        status = tn_analysis_init(&asking->analysis, &asking->query, 0, error);
        if (status) {
            tn_query_fini(&asking->query);
        }
    }
    if (status) {
        tarn_where_destroy(asking->where);
    }
    return status;
}

static void asking_fini(struct asking *asking)
{
    tn_analysis_fini(&asking->analysis);
    tn_query_fini(&asking->query);
    tarn_where_destroy(asking->where);
}

static bool takes(struct asking *asking, const struct tn_lifetime *lifetime)
{
    return tn_where_takes(&asking->query.where, &asking->analysis.where, lifetime);
}

/* Which blocks an expression takes, as the sum of their sizes. */
static uint64_t taken(const struct tarn_snapshot *snapshot, const char *text)
{
    struct asking asking;
    struct tarn_error error;
    uint64_t sum = 0;

    if (asking_init(&asking, snapshot, text, &error)) {
        fail_msg("%s: %s", text, error.text);
    }
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(&asking.analysis.whole);

    for (size_t i = 0; i < asking.analysis.whole.lifetimes.count; i++) {
        sum += takes(&asking, &lifetimes[i]) ? lifetimes[i].size : 0;
    }
    asking_fini(&asking);
    return sum;
}

/* What has no time, or one from before the first, has none that compares. */
static void times_may_be_missing_or_wrong(void **state)
{
    static const char damaged[] =
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': 1, 'stream': 0, 'time_us': 1000},"
        "{'action': 'alloc', 'addr': 1024, 'size': 2, 'stream': 0},"
        "{'action': 'alloc', 'addr': 1536, 'size': 4, 'stream': 0, 'time_us': 900},"
        "{'action': 'alloc', 'addr': 2048, 'size': 8, 'stream': 0, 'time_us': 1050},"
        "{'action': 'free_completed', 'addr': 2048, 'size': 8, 'stream': 0, 'time_us': 1020},"
        "{'action': 'alloc', 'addr': 2560, 'size': 16, 'stream': 0, 'time_us': 1060},"
        "{'action': 'free_completed', 'addr': 2560, 'size': 16, 'stream': 0},"
        "{'action': 'alloc', 'addr': 3072, 'size': 32, 'stream': 0, 'time_us': 1070}]]}";
    struct tarn_snapshot *snapshot = report_parse(damaged);

    (void)state;
    assert_int_equal(taken(snapshot, "start >= 0us"), 1 + 8 + 16 + 32);
    assert_int_equal(taken(snapshot, "start >= 50us"), 8 + 16 + 32);
    assert_int_equal(taken(snapshot, "end >= 0us"), 8);
    assert_int_equal(taken(snapshot, "lifetime >= 0us"), 1 + 32); /* the others end before */
    assert_int_equal(taken(snapshot, "lifetime >= 70us"), 1);
    tarn_snapshot_destroy(snapshot);

    static const char without_end[] = /* behind one that is there longer */
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': 1, 'stream': 0, 'time_us': 1000},"
        "{'action': 'alloc', 'addr': 1024, 'size': 2, 'stream': 0, 'time_us': 1010},"
        "{'action': 'free_completed', 'addr': 1024, 'size': 2, 'stream': 0},"
        "{'action': 'alloc', 'addr': 3072, 'size': 4, 'stream': 0, 'time_us': 1070}]]}";

    snapshot = report_parse(without_end);
    assert_int_equal(taken(snapshot, "lifetime >= 0us"), 1 + 4);
    tarn_snapshot_destroy(snapshot);
}

/* Without host memory there are no answers, and none is left. */
static void without_memory_for_answers(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct tarn_where *where;
    struct tn_where_view view;
    struct tarn_error error;
    uint64_t failures = 0;
    bool good = false;

    (void)state;
    assert_int_equal(tarn_where_parse("function == load || metadata == kv_cache", &where, &error),
                     TARN_OK);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; !good; n++) {
        tarn_host_fail_nth(n);
        good = tn_where_view_init(&view, where, tn_snapshot_model(snapshot), NULL);
        tarn_host_fail_nth(0);
        failures += !good;
        assert_true(good || tarn_host_get_usage().live_bytes == live);
    }
    assert_int_equal(failures, 4); /* the list, and what each expression needs */
    tn_where_view_fini(&view);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    tarn_where_destroy(where);
    tarn_snapshot_destroy(snapshot);
}

static void every_field_means_what_it_says(void **state)
{
    static const struct {
        const char *text;
        uint64_t sizes;
    } rows[] = {
        {"size == 20", 20},
        {"size = 20", 20},
        {"size != 20", ALL - 20},
        {"size < 20", 12},
        {"size <= 20", 32},
        {"size > 1000", 3072},
        {"size >= 1000", 4072},
        {"size == 3KiB", 3072},
        {"size == 1KB || size == 0.02kB", 1020},
        {"address == 0x2000", 1000},
        {"address > 0x2000 && address < 49152", 3072 + 5},
        {"segment == 4096", 100 + 1000 + 3072 + 5 + 7},
        {"segment != 4096", 20},
        {"stream == 7", 20},
        {"device == 0", ALL},
        {"device == 1", 0},
        {"pool == default", ALL - 20},
        {"pool != default", 20},
        {"pool == private", 20},
        {"pool == 0,3", 20},
        {"pool == 3,0", 0},
        {"freed", 1000},
        {"!freed && !before", 20 + 3072 + 5 + 7},
        {"before", 100},
        {"lifetime == 6", 1000 + 3072}, /* to the end of the 8 events */
        {"lifetime == 8", 100},
        {"lifetime == 50us", 1000 + 20},
        {"age < 0.04ms", 5 + 7},   /* 30 us, and none */
        {"lifetime >= 60us", 100}, /* as far as the trace goes */
        {"start == 1", 20},
        {"start >= 3", 5 + 7},
        {"start != 0", ALL - 1000},
        {"start >= 0", ALL - 100},
        {"start <= 10us", 1020},
        {"end == 6", 1000},
        {"end > 0", 1000}, /* the others have none */
        {"!(end > 0)", ALL - 1000},
        {"end == 50us", 1000},
        {"annotation == load", 3072},
        {"annotation == load#1", 3072},
        {"annotation == loa", 0},
        {"annotation ~ '^load#[0-9]$'", 3072},
        {"annotation ~ Profiler", 5}, /* the innermost */
        {"annotation != load", ALL - 3072},
        {"metadata == kv_cache", 5},
        {"metadata ~ cache", 5},
        {"metadata !~ cache", ALL - 5},
        {"compile == 0/0", 3072},
        {"frame == '/u/a.py:1:inner'", 1020},
        {"frame ~ a.py:1", 1020},
        {"frame ~ '\\.py:3:lo'", 3072},
        {"frame ~ '^/u/'", 4092},
        {"frame !~ '^/u/'", 100 + 5 + 7},
        {"function == inner", 1020},
        {"function == inne", 0},
        {"function ~ inne", 1020},
        {"function ~ '^at::'", 1020},
        {"file == a.py", 1020},
        {"file == /u/a.py", 1020},
        {"file == optim/b.py", 1000},
        {"file ~ a.py", 4092},
        {"file != a.py", ALL - 1020},
        {"category == optimizer", 1000},
        {"category == 'parameter (by lifetime)'", 100 + 20},
        {"category == parameter", 100 + 20},
        {"category ~ 'by lifetime'", 100 + 20},
        {"category ~ '^unclassified$'", 3072 + 5 + 7},
        {"size==5 || size==7 && freed", 5}, /* && first */
        {"(size==5 || size==7) && freed", 0},
        {"!size==5 && !before", ALL - 5 - 100},
        {"!(size==5 || before)", ALL - 5 - 100},
        {"!!freed", 1000},
        {"freed && freed || before && before", 1100},
    };
    struct tarn_snapshot *snapshot = report_parse(mixed);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t sizes = taken(snapshot, rows[i].text);

        if (sizes != rows[i].sizes) {
            fail_msg("%s: %" PRIu64 ", expected %" PRIu64, rows[i].text, sizes, rows[i].sizes);
        }
    }
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

enum {
    BEHIND = 64 /* bytes behind each allocation that look like an answer, but are none */
};

static void *dirty_alloc(void *context, size_t size, size_t alignment)
{
    const size_t room = (size + BEHIND + alignment - 1) / alignment * alignment;
    void *memory = aligned_alloc(alignment, room);

    (void)context;
    return memory ? memset(memory, 0xa5, room) : NULL;
}

static void dirty_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

/* Whatever is in the memory of the host, and behind it. */
static void answers_are_no_leftovers(void **state)
{
    const struct tarn_host_hooks dirty = {
        .struct_size = sizeof dirty, .alloc = dirty_alloc, .release = dirty_release};

    assert_int_equal(tarn_host_set_hooks(&dirty), TARN_OK);
    every_field_means_what_it_says(state);
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

static void times_need_times(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 1, 'size': 9,"
                     " 'stream': 0, 'frames': []}]]}");
    struct asking asking;
    struct tarn_error error;

    (void)state;
    assert_int_equal(taken(snapshot, "lifetime >= 1"), 9);
    assert_int_equal(asking_init(&asking, snapshot, "lifetime >= 1s", &error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_string_equal(error.text, "the trace of device 0 has no times; use event numbers in "
                                    "--where");
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- against a slow evaluation ---- */

enum {
    NODES_MAX = 64,
    TEXT_MAX = 3000,
    EXPRESSIONS = 400,
    BLOCKS = 150
};

enum node_kind {
    NODE_OR,
    NODE_AND,
    NODE_NOT,
    NODE_LEAF
};

/* A random expression as a tree. */
struct node {
    enum node_kind kind;
    int left;
    int right;
    int leaf; /* number in `leaves` */
    int sign; /* number in `signs` */
    uint64_t number;
    const char *text;
};

struct tree {
    struct node nodes[NODES_MAX];
    int count;
    uint64_t random;
};

static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">=", "~", "!~"};

enum leaf_kind {
    LEAF_NUMBER,
    LEAF_TEXT, /* of frames */
    LEAF_FLAG
};

static const struct {
    const char *name;
    enum leaf_kind kind;
    const char *unit;
    uint64_t factor;
    uint64_t most; /* of numbers */
} leaves[] = {
    {"size", LEAF_NUMBER, "", 1, 4096},
    {"size", LEAF_NUMBER, "MiB", 1 << 20, 64},
    {"size", LEAF_NUMBER, "KB", 1000, 9000},
    {"lifetime", LEAF_NUMBER, "", 1, 3000},
    {"age", LEAF_NUMBER, "ms", 1000, 3000},
    {"start", LEAF_NUMBER, "", 1, 9000},
    {"start", LEAF_NUMBER, "us", 1, 4000000},
    {"end", LEAF_NUMBER, "", 1, 9000},
    {"stream", LEAF_NUMBER, "", 1, 2},
    {"device", LEAF_NUMBER, "", 1, 2},
    {"frame", LEAF_TEXT, "", 0, 0},
    {"function", LEAF_TEXT, "", 0, 0},
    {"file", LEAF_TEXT, "", 0, 0},
    {"freed", LEAF_FLAG, "", 0, 0},
    {"before", LEAF_FLAG, "", 0, 0},
};

/* Without characters that mean something in a pattern: so strstr is enough. */
static const char *const words[] = {"forward", "backward", "torch",      "training", "adam",
                                    "step",    "module",   "functional", "nothing",  "_"};

static uint64_t random_next(struct tree *tree)
{
    tree->random ^= tree->random << 13;
    tree->random ^= tree->random >> 7;
    tree->random ^= tree->random << 17;
    return tree->random;
}

static uint64_t below(struct tree *tree, uint64_t limit)
{
    return random_next(tree) % limit;
}

static int leaf_make(struct tree *tree)
{
    struct node *node = &tree->nodes[tree->count];

    *node = (struct node){.kind = NODE_LEAF};
    node->leaf = (int)below(tree, sizeof leaves / sizeof *leaves);
    if (leaves[node->leaf].kind == LEAF_NUMBER) {
        node->sign = (int)below(tree, 6);
        node->number = below(tree, leaves[node->leaf].most + 1);
    } else if (leaves[node->leaf].kind == LEAF_TEXT) {
        node->sign = 6 + (int)below(tree, 2);
        node->text = words[below(tree, sizeof words / sizeof *words)];
    }
    return tree->count++;
}

static int tree_make(struct tree *tree, unsigned depth)
{
    const uint64_t kind = below(tree, 4);

    if (depth == 0 || kind == NODE_LEAF || tree->count > NODES_MAX / 2) {
        return leaf_make(tree);
    }
    const int number = tree->count++;

    tree->nodes[number] = (struct node){.kind = (enum node_kind)kind};
    const int left = tree_make(tree, depth - 1);
    const int right = kind == NODE_NOT ? -1 : tree_make(tree, depth - 1);

    tree->nodes[number].left = left;
    tree->nodes[number].right = right;
    return number;
}

struct text {
    char text[TEXT_MAX];
    size_t used;
};

static void put(struct text *out, const char *text)
{
    out->used += (size_t)snprintf(out->text + out->used, sizeof out->text - out->used, "%s", text);
    assert_true(out->used < sizeof out->text);
}

static void leaf_print(struct tree *tree, struct text *out, const struct node *node)
{
    char number[32];

    put(out, leaves[node->leaf].name);
    if (leaves[node->leaf].kind == LEAF_FLAG) {
        return;
    }
    put(out, below(tree, 2) ? " " : "");
    put(out, signs[node->sign]);
    put(out, below(tree, 2) ? " " : "");
    if (leaves[node->leaf].kind == LEAF_NUMBER) {
        (void)snprintf(number, sizeof number, "%" PRIu64 "%s", node->number,
                       leaves[node->leaf].unit);
        put(out, number);
    } else {
        const char *quote = ((const char *[]){"", "'", "\""})[below(tree, 3)];

        put(out, quote);
        put(out, node->text);
        put(out, quote);
    }
}

/* With parentheses where they are needed, and now and then where not. */
static void tree_print(struct tree *tree, struct text *out, int number, enum node_kind around)
{
    const struct node *node = &tree->nodes[number];
    const bool has_parentheses = node->kind < around || below(tree, 8) == 0;

    put(out, has_parentheses ? "(" : "");
    switch (node->kind) {
    case NODE_LEAF:
        leaf_print(tree, out, node);
        break;
    case NODE_NOT:
        put(out, "!");
        tree_print(tree, out, node->left, NODE_NOT);
        break;
    case NODE_AND:
    case NODE_OR:
        tree_print(tree, out, node->left, node->kind);
        put(out, node->kind == NODE_AND ? " && " : "||");
        tree_print(tree, out, node->right, node->kind);
        break;
    }
    put(out, has_parentheses ? ")" : "");
}

static bool slow_compare(int sign, bool is_known, uint64_t value, uint64_t number)
{
    if (!is_known) {
        return sign == 1;
    }
    return ((const bool[]){value == number, value != number,
                           value<number, value <= number, value> number, value >= number})[sign];
}

static int64_t slow_time(const struct tn_analysis *analysis, uint64_t entry)
{
    return tn_trace_at(analysis->whole.model, analysis->whole.trace, entry)->time_us;
}

static bool slow_number(const struct tn_analysis *analysis, const struct tn_lifetime *lifetime,
                        const struct node *node)
{
    const char *name = leaves[node->leaf].name;
    const uint64_t number = node->number * leaves[node->leaf].factor;
    const bool is_time = strchr(leaves[node->leaf].unit, 's') != NULL;
    const uint64_t count = analysis->whole.trace->count;

    if (strcmp(name, "size") == 0) {
        return slow_compare(node->sign, true, lifetime->size, number);
    }
    if (strcmp(name, "stream") == 0) {
        return slow_compare(node->sign, true, lifetime->stream, number);
    }
    if (strcmp(name, "device") == 0) {
        return slow_compare(node->sign, true, 0, number);
    }
    if (strcmp(name, "end") == 0) {
        return slow_compare(node->sign, lifetime->end != TN_NEVER, lifetime->end, number);
    }
    if (strcmp(name, "start") == 0) {
        const bool is_known = lifetime->start != TN_NEVER;

        return slow_compare(node->sign, is_known,
                            is_known && is_time ? (uint64_t)(slow_time(analysis, lifetime->start) -
                                                             slow_time(analysis, 0))
                                                : lifetime->start,
                            number);
    }
    const uint64_t from = lifetime->start == TN_NEVER ? 0 : lifetime->start;
    const uint64_t to = lifetime->end == TN_NEVER ? count : lifetime->end;
    const uint64_t last = to == count ? count - 1 : to;

    return slow_compare(node->sign, true,
                        is_time ? (uint64_t)(slow_time(analysis, last) - slow_time(analysis, from))
                                : to - from,
                        number);
}

static bool slow_text(const struct tn_analysis *analysis, const struct tn_lifetime *lifetime,
                      const struct node *node)
{
    const struct tn_model *model = analysis->whole.model;
    const struct tn_stack stack = tn_model_stack(model, lifetime->stack);
    const char *name = leaves[node->leaf].name;
    bool is_there = false;

    for (uint32_t i = 0; i < stack.count; i++) {
        const struct tn_frame *frame = tn_model_frame(model, stack.frames[i]);
        const bool in_file = strstr(tn_model_string(model, frame->filename).text, node->text);
        const bool in_name = strstr(tn_model_string(model, frame->name).text, node->text);

        is_there = is_there || (in_file && strcmp(name, "function") != 0) ||
                   (in_name && strcmp(name, "file") != 0);
    }
    return is_there == (node->sign == 6);
}

static bool slow_holds(const struct tree *tree, const struct tn_analysis *analysis,
                       const struct tn_lifetime *lifetime, int number)
{
    const struct node *node = &tree->nodes[number];

    switch (node->kind) {
    case NODE_OR:
        return slow_holds(tree, analysis, lifetime, node->left) ||
               slow_holds(tree, analysis, lifetime, node->right);
    case NODE_AND:
        return slow_holds(tree, analysis, lifetime, node->left) &&
               slow_holds(tree, analysis, lifetime, node->right);
    case NODE_NOT:
        return !slow_holds(tree, analysis, lifetime, node->left);
    case NODE_LEAF:
        break;
    }
    if (leaves[node->leaf].kind == LEAF_FLAG) {
        return strcmp(leaves[node->leaf].name, "freed") == 0 ? lifetime->end != TN_NEVER
                                                             : lifetime->start == TN_NEVER;
    }
    return leaves[node->leaf].kind == LEAF_NUMBER ? slow_number(analysis, lifetime, node)
                                                  : slow_text(analysis, lifetime, node);
}

/* Returns how many blocks were taken. */
static size_t expression_check(const struct tarn_snapshot *snapshot, uint64_t seed)
{
    struct tree tree = {.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
    struct text text = {.used = 0};
    struct asking asking;
    struct tarn_error error;
    size_t count = 0;
    const int root = tree_make(&tree, 5);

    tree_print(&tree, &text, root, NODE_OR);
    if (asking_init(&asking, snapshot, text.text, &error)) {
        fail_msg("%s: %s", text.text, error.text);
    }
    const struct tn_timeline *whole = &asking.analysis.whole;

    for (int i = 0; i < BLOCKS; i++) {
        const struct tn_lifetime *lifetime =
            tn_timeline_lifetimes(whole) + below(&tree, whole->lifetimes.count);
        const bool holds = takes(&asking, lifetime);

        count += holds;
        if (holds != slow_holds(&tree, &asking.analysis, lifetime, root)) {
            fail_msg("%s: %s for a block of %" PRIu64 " from entry %" PRIu64, text.text,
                     holds ? "holds" : "does not hold", lifetime->size, lifetime->start);
        }
    }
    asking_fini(&asking);
    return count;
}

static void random_expressions_agree_with_a_slow_evaluation(void **state)
{
    static const char *const names[] = {"tiny", "multistream", "oom"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_snapshot *snapshot = report_load(names[i]);
        size_t count = 0;

        for (uint64_t seed = 0; seed < EXPRESSIONS; seed++) {
            count += expression_check(snapshot, seed + 1);
        }
        assert_true(count > (size_t)EXPRESSIONS * BLOCKS / 10); /* neither all nor none */
        assert_true(count < (size_t)EXPRESSIONS * BLOCKS / 10 * 9);
        tarn_snapshot_destroy(snapshot);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- reports ---- */

static enum tarn_status live(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_live(asked->snapshot, &asked->options, writer, error);
}

static void reports_say_what_they_leave_out(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mixed);
    struct tarn_where *where;
    struct tarn_selection selection = {.struct_size = sizeof selection};
    const struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .selection = &selection}};

    (void)state;
    assert_int_equal(tarn_where_parse("category != optimizer && annotation == load && pool == "
                                      "default && file ~ \"\x1b|ba\" && lifetime > 1us",
                                      &where, NULL),
                     TARN_OK);
    selection.where = where;
    report_says(
        live, &asked,
        "device 0\n"
        "selected: blocks where category != optimizer && annotation == load && pool == "
        "default && file ~ \"\\x1b|ba\" && lifetime > 1us\n"
        "\n"
        "memory: 128.00 KiB reserved, 3.00 KiB requested, at event 7 of 8\n"
        "       bytes   share    blocks  allocated by\n"
        "    3.00 KiB  100.0%         1  ba.py:3:load\n"
        "    3.00 KiB  100.0%         1  total\n"
        "       132 B          requested by blocks that are not selected\n"
        "  124.87 KiB          reserved but not requested: cached, between blocks, or lost to "
        "rounding\n");
    assert_true(report_fails_cleanly(live, &asked) > 20);
    tarn_where_destroy(where);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_means_what_it_says),
        cmocka_unit_test(answers_are_no_leftovers),
        cmocka_unit_test(times_may_be_missing_or_wrong),
        cmocka_unit_test(without_memory_for_answers),
        cmocka_unit_test(times_need_times),
        cmocka_unit_test(random_expressions_agree_with_a_slow_evaluation),
        cmocka_unit_test(reports_say_what_they_leave_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
