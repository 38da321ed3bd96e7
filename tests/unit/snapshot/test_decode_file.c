/* SPDX-License-Identifier: MIT */
/* What a file is, and what its segments, settings and frames may hold, through JSON; ' stands for
 * ". */
#include "support/test.h"

#include "snapshot/snapshot.h"
#include "tarn/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum tarn_status load(const char *json, struct tarn_snapshot **snapshot,
                             struct tarn_error *error)
{
    char *text = strdup(json);

    assert_non_null(text);
    for (char *c = text; *c; c++) {
        *c = (char)(*c == '\'' ? '"' : *c);
    }
    const enum tarn_status status =
        tarn_snapshot_load_memory(text, strlen(text), NULL, snapshot, error);

    free(text);
    return status;
}

static struct tarn_snapshot *must_load(const char *json)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    if (load(json, &snapshot, &error)) {
        fail_msg("%s: %s", json, error.text);
    }
    return snapshot;
}

/* It fails with these words; NULL: it is read. */
static void load_says(const char *json, const char *said)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {.text = ""};
    const enum tarn_status status = load(json, &snapshot, &error);

    if (said) {
        assert_null(snapshot);
        if (status != TARN_ERR_FORMAT || !strstr(error.text, said)) {
            fail_msg("%s: \"%s\" does not say \"%s\"", json, error.text, said);
        }
    } else if (status) {
        fail_msg("%s: %s", json, error.text);
    }
    tarn_snapshot_destroy(snapshot);
}

/* As many devices as there may be, and one more. */
static void devices_have_a_limit(void **state)
{
    char *text = malloc(3 * (TN_DEVICES_MAX + 1) + 128);

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct tarn_snapshot *snapshot = NULL;
        struct tarn_error error = {.text = ""};
        size_t used = (size_t)snprintf(text, 128, "{\"segments\":[],\"device_traces\":[");
        const int64_t offset = (int64_t)used - 1;

        for (size_t i = 0; i < TN_DEVICES_MAX + more; i++) {
            used += (size_t)snprintf(text + used, 4, "%s[]", i ? "," : "");
        }
        used += (size_t)snprintf(text + used, 4, "]}");
        const enum tarn_status st = tarn_snapshot_load_memory(text, used, NULL, &snapshot, &error);

        assert_int_equal(st, more ? TARN_ERR_LIMIT : TARN_OK);
        assert_int_equal(more ? offset : -1, more ? error.offset : -1);
        tarn_snapshot_destroy(snapshot);
    }
    free(text);
}

static void other_files_are_named(void **state)
{
    static const char none[] = "this file is not a memory snapshot";
    static const char profile[] = "this file is a Chrome trace";
    static const struct {
        const char *json;
        const char *said;
    } cases[] = {
        {"{'segments':[]}", NULL},
        {"{'device_traces':[]}", NULL},
        {"[]", NULL}, /* an old snapshot of nothing */
        {"[{'address':512,'total_size':512,'blocks':[]}]", NULL},
        {"{}", none},
        {"{'a':1,'b':2}", none},
        {"{'segment':[]}", none},
        {"[7]", none},
        {"[{}]", none},
        {"[{'name':1}]", none},
        {"[[]]", none},
        {"[{'action':'alloc','addr':1}]", none}, /* the trace of one device */
        {"[{'name':'f','filename':'a','line':1}]", none},
        {"{'traceEvents':[]}", profile},
        {"{'a':1,'traceEvents':[]}", profile},
        {"{'traceevents':[]}", none},
        {"{'traceEventz':[]}", none},
        {"[{'ph':'X'}]", profile},
        {"[{'name':'x','ph':'X'}]", profile},
        {"[{'pq':'X'}]", none},
        {"[{'p':'X'}]", none},
        {"{'trace':[]}", none},
        {"['ph']", none},
        {"[['ph','X']]", none},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        load_says(cases[i].json, cases[i].said);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* A list is of segments if its first item has one of these keys, though others are missing. */
static void one_key_tells_a_segment(void **state)
{
    (void)state;
    load_says("[{'blocks':[]}]", "lacks the key");
    load_says("[{'total_size':512}]", "lacks the key");
    load_says("[{'address':512}]", "lacks the key");
    load_says("[{'x':1,'address':512}]", "lacks the key");
}

static void segments_have_values_of_kinds(void **state)
{
    static const struct {
        const char *key;
        const char *said;
    } cases[] = {
        {"'device':2147483647", NULL},
        {"'device':-2147483648", NULL},
        {"'device':2147483648", "a device number"},
        {"'device':-2147483649", "a device number"},
        {"'device':'0'", "device"},
        {"'segment_pool_id':[1,2]", NULL},
        {"'segment_pool_id':[1,18446744073709551615]", NULL},
        {"'segment_pool_id':[18446744073709551615,1]", NULL},
        {"'segment_pool_id':[1]", "a tuple of two integers"},
        {"'segment_pool_id':[1,2,3]", "a tuple of two integers"},
        {"'segment_pool_id':[1,'2']", "a tuple of two integers"},
        {"'segment_pool_id':['1',2]", "a tuple of two integers"},
        {"'segment_pool_id':[1.5,2]", "a tuple of two integers"},
        {"'segment_pool_id':[]", "a tuple of two integers"},
        {"'segment_pool_id':7", "a tuple of two integers"},
        {"'segment_pool_id':{}", "a tuple of two integers"},
        {"'frames':null", NULL},
        {"'frames':[]", NULL},
        {"'frames':{}", "a list of frames"},
        {"'frames':7", "a list of frames"},
        {"'frames':[7]", "a list of frames"},
        {"'is_expandable':1", "is_expandable"},
        {"'segment_type':7", "a string"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[256];

        (void)snprintf(json, sizeof json,
                       "{'segments':[{'address':512,'total_size':512,'stream':0,'blocks':[],%s}]}",
                       cases[i].key);
        load_says(json, cases[i].said);
    }
    load_says("{'segments':[{'address':512,'total_size':512,'stream':0,'blocks':7}]}",
              "a list of blocks");
    load_says("{'segments':[{'address':512,'total_size':512,'stream':0,'blocks':{}}]}",
              "a list of blocks");
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void pools_are_what_the_list_says(void **state)
{
    struct tarn_snapshot *snapshot =
        must_load("{'segments':[{'address':512,'total_size':512,'stream':0,'blocks':[],"
                  "'segment_pool_id':[7,18446744073709551615]}]}");
    const struct tn_model *model = tn_snapshot_model(snapshot);

    (void)state;
    assert_int_equal(model->segments[0].pool.id[0], 7);
    assert_int_equal(model->segments[0].pool.id[1], UINT64_MAX);
    tarn_snapshot_destroy(snapshot);
}

/* ---- settings ---- */

/* Of old blocks: stacks of their own beside a history, and keys that nobody knows. */
static void old_blocks_have_what_they_say(void **state)
{
    struct tarn_snapshot *snapshot = must_load(
        "[{'address':4096,'total_size':1024,'blocks':[{'size':512,'state':'active_allocated',"
        "'frames':[{'name':'own','filename':'a','line':1}],'history':[{'addr':4096,'real_size':7,"
        "'x':1,'frames':[{'name':'old','filename':'b','line':2}]}]},{'size':512,'state':"
        "'inactive'}]}]");
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_model_block *block = &model->segments[0].blocks[0];
    const struct tn_frame *frame =
        tn_model_frame(model, tn_model_stack(model, block->stack).frames[0]);

    (void)state;
    assert_string_equal(tn_model_string(model, frame->name).text, "own");
    assert_int_equal(block->requested_size, 512);
    assert_int_equal(block->history[0].real_size, 7);
    assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 1);
    tarn_snapshot_destroy(snapshot);
}

/* A pool of zeros beside none, and a line that no file has. */
static void numbers_at_the_edges(void **state)
{
    struct tarn_snapshot *snapshot =
        must_load("{'segments':[],'device_traces':[[{'action':'alloc','addr':1,'size':1,'stream':0,"
                  "'pool_id':[0,0]},{'action':'alloc','addr':2,'size':1,'stream':0},"
                  "{'action':'alloc','addr':3,'size':1,'stream':0,'pool_id':[0,0]}]]}");
    const struct tn_model *model = tn_snapshot_model(snapshot);

    (void)state;
    /* Also behind more keys than an entry keeps the order of. */
    char json[4096] = "{'segments':[],'device_traces':[[";

    for (int i = 0; i < 2; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                       "%s{'action':'alloc','addr':1,'size':1,'stream':0", i > 0 ? "}," : "");
        for (int k = 0; k < 28; k++) {
            (void)snprintf(json + strlen(json), sizeof json - strlen(json), ",'x%d':1", k);
        }
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%s",
                       i > 0 ? ",'pool_id':[0,0]}]]}" : "");
    }
    struct tarn_snapshot *behind = must_load(json);

    for (uint64_t i = 0; i < 2; i++) {
        const struct tn_model *other = tn_snapshot_model(behind);
        const struct tn_trace_entry *entry = tn_trace_at(other, &other->traces[0], i);

        assert_int_equal(tn_model_extra(other, entry->extra)->has_pool, i == 1);
        assert_int_equal(tn_model_shape(other, tn_model_extra(other, entry->extra)->shape).count,
                         32);
    }
    tarn_snapshot_destroy(behind);
    for (uint64_t i = 0; i < 3; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, &model->traces[0], i);

        assert_int_equal(tn_model_extra(model, entry->extra)->has_pool, i != 1);
    }
    tarn_snapshot_destroy(snapshot);
    load_says("{'segments':[],'device_traces':[[{'action':'alloc','addr':1,'size':1,'stream':0,"
              "'frames':[{'line':18446744073709551615,'name':'f','filename':'a'}]}]]}",
              "line");
}

static void divisions_are_by_powers_of_two(void **state)
{
    static const struct {
        const char *key;
        int at; /* -1: of no interval, which is a warning */
    } cases[] = {{"1", 0},   {"2", 1},   {"32768", 15}, {"65536", -1}, {"3", -1},
                 {"", -1},   {"0", -1},  {"64x", -1},   {"x", -1},     {"-1", -1},
                 {" 64", 6}, {"064", 6}, {"4.0", -1},   {"1e1", -1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[256];

        (void)snprintf(json, sizeof json,
                       "{'segments':[],'allocator_settings':{'roundup_power2_divisions':{'%s':5}}}",
                       cases[i].key);
        struct tarn_snapshot *snapshot = must_load(json);
        const struct tn_model_settings *settings = &tn_snapshot_model(snapshot)->settings;

        assert_true(settings->present && settings->has_roundup);
        for (int k = 0; k < TN_ROUNDUP_INTERVALS; k++) {
            if (settings->roundup_power2_divisions[k] != (k == cases[i].at ? 5 : 0)) {
                fail_msg("\"%s\" sets interval %d", cases[i].key, k);
            }
        }
        assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), cases[i].at < 0);
        tarn_snapshot_destroy(snapshot);
    }
    /* The value of no interval may be anything. */
    tarn_snapshot_destroy(
        must_load("{'segments':[],'allocator_settings':{'roundup_power2_divisions':{'3':'x'}}}"));
    /* A long name is cut after 60 bytes. */
    load_says("{'segments':[],'allocator_settings':{'roundup_power2_divisions':{"
              "'0000000000000000000000000000000000000000000000000000000000000000000064':'x'}}}",
              "key `000000000000000000000000000000000000000000000000000000000000` at");
    load_says("{'segments':[],'allocator_settings':{'roundup_power2_divisions':[1]}}", "a dict");
    load_says("{'segments':[],'allocator_settings':{'roundup_power2_divisions':{'1':'x'}}}", "1");
}

static void numbers_of_settings_have_kinds(void **state)
{
    struct tarn_snapshot *snapshot =
        must_load("{'segments':[],'allocator_settings':{'max_split_size':18446744073709551615,"
                  "'garbage_collection_threshold':1}}");
    const struct tn_model_settings *settings = &tn_snapshot_model(snapshot)->settings;

    (void)state;
    assert_int_equal(settings->max_split_size, -1); /* SIZE_MAX is no limit */
    assert_true(settings->garbage_collection_threshold == 1);
    tarn_snapshot_destroy(snapshot);
    snapshot = must_load("{'segments':[],'allocator_settings':{'max_split_size':7,"
                         "'garbage_collection_threshold':0.25}}");
    settings = &tn_snapshot_model(snapshot)->settings;
    assert_int_equal(settings->max_split_size, 7);
    assert_true(settings->garbage_collection_threshold == 0.25);
    tarn_snapshot_destroy(snapshot);
    load_says("{'segments':[],'allocator_settings':{'garbage_collection_threshold':'1'}}",
              "a number");
    load_says("{'segments':[],'allocator_settings':{'max_split_size':'1'}}", "max_split_size");
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- frames ---- */

/* Frames that differ in one key of torch.fx alone are different, and keep it. */
static void each_key_of_fx_counts(void **state)
{
    static const char *const keys[] = {"fx_node_op", "fx_node_name", "fx_node_target",
                                       "fx_original_trace"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char json[512];

        (void)snprintf(json, sizeof json,
                       "{'segments':[],'device_traces':[["
                       "{'action':'alloc','addr':512,'size':1,'stream':0,'frames':["
                       "{'name':'f','filename':'a','line':1,'%s':'text'},"
                       "{'name':'f','filename':'a','line':1}]}]]}",
                       keys[i]);
        struct tarn_snapshot *snapshot = must_load(json);
        const struct tn_model *model = tn_snapshot_model(snapshot);
        const struct tn_stack stack =
            tn_model_stack(model, tn_trace_at(model, &model->traces[0], 0)->stack);

        assert_int_equal(stack.count, 2);
        assert_int_not_equal(stack.frames[0], stack.frames[1]);
        const struct tn_frame_fx *fx =
            tn_chunked_vec_at(&model->fx, tn_model_frame(model, stack.frames[0])->fx);
        const uint32_t texts[] = {fx->node_op, fx->node_name, fx->node_target, fx->original_trace};

        for (size_t k = 0; k < 4; k++) {
            assert_string_equal(tn_model_string(model, texts[k]).text, k == i ? "text" : "");
        }
        assert_int_equal(tn_model_frame(model, stack.frames[1])->fx, 0);
        tarn_snapshot_destroy(snapshot);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Entries that differ in one part alone keep it. */
static void entries_beside_each_other_keep_what_differs(void **state)
{
    static const char *const parts[] = {"'pool_id':[0,1]",
                                        "'pool_id':[1,1]",
                                        "'pool_id':[0,1]",
                                        "'pool_id':[1,0]",
                                        "'pool_id':[1,1]",
                                        "'pool_id':[1,0]",
                                        "'pool_id':[2,2]",
                                        "'pool_id':[0,0]",
                                        "'user_metadata':'a'",
                                        "'user_metadata':'b'",
                                        "'compile_context':'a'",
                                        "'compile_context':'b'",
                                        "'category':'a'",
                                        "'category':'b'",
                                        "'internal_metadata':'a'",
                                        "'internal_metadata':'b'",
                                        "'internal_metadata':'a'",
                                        "'x':1",
                                        "'x':2",
                                        "'x':1"};
    struct tarn_snapshot *snapshot;
    char json[4096] = "{'segments':[],'device_traces':[[";
    const size_t count = sizeof parts / sizeof parts[0];

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(json);

        (void)snprintf(json + used, sizeof json - used,
                       "%s{'action':'alloc','addr':512,'size':1,'stream':0,%s}", i > 0 ? "," : "",
                       parts[i]);
    }
    (void)snprintf(json + strlen(json), 8, "]]}");
    snapshot = must_load(json);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    static const uint64_t pools[][2] = {{0, 1}, {1, 1}, {0, 1}, {1, 0},
                                        {1, 1}, {1, 0}, {2, 2}, {0, 0}};

    for (size_t i = 0; i < count; i++) {
        const struct tn_trace_extra *extra =
            tn_model_extra(model, tn_trace_at(model, &model->traces[0], i)->extra);
        const struct tn_container rest = tn_model_container(model, extra->rest);
        const uint32_t texts[] = {extra->user_metadata, extra->compile_context, extra->category,
                                  extra->internal_metadata};

        assert_int_equal(extra->has_pool, i < 8);
        assert_int_equal(extra->pool.id[0], i < 8 ? pools[i][0] : 0);
        assert_int_equal(extra->pool.id[1], i < 8 ? pools[i][1] : 0);
        for (size_t k = 0; k < 4; k++) {
            const bool here = i / 2 == 4 + k || (k == 3 && i == 16);

            assert_string_equal(tn_model_string(model, texts[k]).text, !here        ? ""
                                                                       : i % 2 == 0 ? "a"
                                                                                    : "b");
        }
        assert_int_equal(rest.count, i >= 17);
        assert_true(i < 17 || rest.items[0].value.integer == (i == 18 ? 2 : 1));
    }
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- what is refused, wherever it is ---- */

/* Something wrong, before something good. */
static void one_wrong_item_is_enough(void **state)
{
    static const struct {
        const char *json;
        const char *said;
    } cases[] = {
        {"{'segments':[7,{'address':512,'total_size':0,'blocks':[]}]}", "dicts of segments"},
        {"{'segments':[],'device_traces':[7,[]]}", "lists of trace entries"},
        {"{'segments':[],'device_traces':[[{'action':'alloc','addr':1},7]]}",
         "contains another item"},
        {"{'segments':[],'device_traces':[[{'action':7,'addr':1}]]}", "a string"},
        {"{'segments':[],'external_annotations':[7,{}]}", "dicts of annotations"},
        {"{'segments':[],'external_annotations':[{'stage':7}]}", "a string"},
        {"{'segments':[],'allocator_settings':{'PYTORCH_CUDA_ALLOC_CONF':7}}", "a string"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        load_says(cases[i].json, cases[i].said);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void blocks_have_values_of_kinds(void **state)
{
    static const char no_block[] = "dicts with the key `state`";
    static const struct {
        const char *blocks; /* before one that is right */
        const char *said;
    } cases[] = {
        {"{'size':0,'state':'inactive'}", NULL},
        {"7", no_block},
        {"null", no_block},
        {"'x'", no_block},
        {"[]", no_block},
        {"[7]", no_block},
        {"{}", no_block},
        {"{'size':512}", no_block},
        {"{'state':'inactive'}", no_block},
        {"{'size':'x','state':'inactive'}", "an integer"},
        {"{'address':'x','size':512,'state':'inactive'}", "an integer"},
        {"{'size':512,'requested_size':'x','state':'inactive'}", "an integer"},
        {"{'size':512,'state':7}", "a string"},
        {"{'size':512,'frames':7,'state':'inactive'}", "a list of frames"},
        {"{'size':512,'history':7,'state':'inactive'}", "a list"},
        {"{'size':512,'history':[7,{}],'state':'inactive'}", "dicts"},
        {"{'size':512,'history':[{'real_size':'x'},{}],'state':'inactive'}", "an integer"},
        {"{'size':512,'history':[{'addr':'x','real_size':1}],'state':'inactive'}", "an integer"},
        {"{'size':512,'history':[{'frames':7}],'state':'inactive'}", "a list of frames"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[256];

        (void)snprintf(json, sizeof json,
                       "{'segments':[{'address':512,'total_size':512,'blocks':["
                       "%s,{'size':512,'state':'inactive'}]}]}",
                       cases[i].blocks);
        load_says(json, cases[i].said);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- what is worth a warning ---- */

static bool find_warning(void *context, const struct tarn_snapshot_warning *warning)
{
    const char **wanted = context;

    *wanted = *wanted && strstr(warning->text, *wanted) ? NULL : *wanted;
    return true;
}

/* Reads the file with one warning, which says that; NULL: with none. */
static struct tarn_snapshot *load_warns(const char *json, const char *said)
{
    struct tarn_snapshot *snapshot = must_load(json);
    const char *missing = said;
    const size_t count = tarn_snapshot_walk_warnings(snapshot, find_warning, &missing);

    if (missing || count != (said ? 1 : 0)) {
        fail_msg("%s: %zu warnings, none says \"%s\"", json, count, missing ? missing : "");
    }
    return snapshot;
}

static void odd_segments_and_times_are_warned_of(void **state)
{
    static const struct {
        const char *json;
        const char *said;
    } cases[] = {
        {"{'segments':[{'address':512,'total_size':0,'blocks':[],'segment_type':'small'}]}", NULL},
        {"{'segments':[{'address':512,'total_size':0,'blocks':[],'segment_type':'large'}]}", NULL},
        {"{'segments':[{'address':512,'total_size':0,'blocks':[],'segment_type':'medium'}]}",
         "`segment_type` has an unknown value"},
        {"{'segments':[{'address':18446744073709551104,'total_size':511,'blocks':[{'size':511,"
         "'state':'inactive'}]}]}",
         NULL},
        {"{'segments':[{'address':18446744073709551104,'total_size':512,'blocks':[{'size':512,"
         "'state':'inactive'}]}]}",
         "address"},
        {"{'device_traces':[[{'action':'alloc','addr':1,'time_us':5},{'action':'alloc','addr':1,"
         "'time_us':5},{'action':'alloc','addr':1},{'action':'alloc','addr':1,'time_us':6}]]}",
         NULL},
        {"{'device_traces':[[{'action':'alloc','addr':1,'time_us':5},{'action':'alloc','addr':1},"
         "{'action':'alloc','addr':1,'time_us':4}]]}",
         "time_us"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tarn_snapshot_destroy(load_warns(cases[i].json, cases[i].said));
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* The sum of all sizes has a bound: a size beyond counts as 0. */
static void sizes_of_blocks_stay_in_bounds(void **state)
{
    struct tarn_snapshot *snapshot = must_load(
        "{'segments':[{'address':512,'total_size':0,'blocks':[{'size':9223372036854775808,"
        "'requested_size':1,'state':'inactive'},{'size':512,'requested_size':"
        "9223372036854775808,'state':'inactive'},{'size':512,'history':[{'real_size':"
        "9223372036854775808},{'real_size':7}],'state':'inactive'}]}]}");
    const struct tn_model_block *blocks = tn_snapshot_model(snapshot)->segments[0].blocks;

    (void)state;
    assert_int_equal(blocks[0].size, 0);
    assert_int_equal(blocks[0].requested_size, 1);
    assert_int_equal(blocks[1].size, 512);
    assert_int_equal(blocks[1].requested_size, 0);
    assert_int_equal(blocks[2].history[0].real_size, 0);
    assert_int_equal(blocks[2].history[1].real_size, 7);
    tarn_snapshot_destroy(snapshot);
}

/* Without a type: those above 2 MiB. */
static void large_segments_are_above_two_mib(void **state)
{
    static const struct {
        const char *more;
        unsigned size;
        bool large;
    } cases[] = {
        {"", (2 << 20) - 512, false},
        {"", 2 << 20, false},
        {"", (2 << 20) + 512, true},
        {"", 20 << 20, true},
        {",'segment_type':'large'", 512, true},
        {",'segment_type':'small'", 20 << 20, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[256];

        (void)snprintf(json, sizeof json,
                       "{'segments':[{'address':512,'total_size':%u,'blocks':[]%s}]}",
                       cases[i].size, cases[i].more);
        struct tarn_snapshot *snapshot = must_load(json);

        assert_int_equal(tn_snapshot_model(snapshot)->segments[0].is_large, cases[i].large);
        tarn_snapshot_destroy(snapshot);
    }
}

/* ---- fields ---- */

/* Any number of unknown keys, beside each other in several annotations. */
static void annotations_keep_each_field(void **state)
{
    char json[8192] = "{'segments':[],'external_annotations':[";

    (void)state;
    for (int i = 0; i < 8; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%s{", i > 0 ? "," : "");
        for (int k = 0; k < 9; k++) {
            (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%s'k%d':%d",
                           k > 0 ? "," : "", k, 100 * i + k);
        }
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "}");
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]}");
    struct tarn_snapshot *snapshot = must_load(json);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->annotation_count, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(model->annotations[i].field_count, 9);
        for (int k = 0; k < 9; k++) {
            assert_int_equal(model->annotations[i].fields[k].value.integer, 100 * i + k);
        }
    }
    tarn_snapshot_destroy(snapshot);
}

/* A key that comes twice is looked for among the first 64 only; beyond, both are kept. */
static void many_fields_are_not_compared_with_all(void **state)
{
    char json[4096] = "{'segments':[],'allocator_settings':{";

    (void)state;
    for (int k = 0; k < 65; k++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "'k%d':%d,", k, k);
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "'k63':7,'k64':8}}");
    struct tarn_snapshot *snapshot = load_warns(json, "`k63` occurs twice");
    const struct tn_model_settings *settings = &tn_snapshot_model(snapshot)->settings;

    assert_int_equal(settings->field_count, 66);
    assert_int_equal(settings->fields[63].value.integer, 7);
    assert_int_equal(settings->fields[64].value.integer, 64);
    assert_int_equal(settings->fields[65].value.integer, 8);
    assert_int_equal(settings->max_split_size, -1); /* none is given */
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_a_limit),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(one_key_tells_a_segment),
        cmocka_unit_test(segments_have_values_of_kinds),
        cmocka_unit_test(pools_are_what_the_list_says),
        cmocka_unit_test(old_blocks_have_what_they_say),
        cmocka_unit_test(numbers_at_the_edges),
        cmocka_unit_test(divisions_are_by_powers_of_two),
        cmocka_unit_test(numbers_of_settings_have_kinds),
        cmocka_unit_test(each_key_of_fx_counts),
        cmocka_unit_test(entries_beside_each_other_keep_what_differs),
        cmocka_unit_test(one_wrong_item_is_enough),
        cmocka_unit_test(blocks_have_values_of_kinds),
        cmocka_unit_test(odd_segments_and_times_are_warned_of),
        cmocka_unit_test(sizes_of_blocks_stay_in_bounds),
        cmocka_unit_test(large_segments_are_above_two_mib),
        cmocka_unit_test(annotations_keep_each_field),
        cmocka_unit_test(many_fields_are_not_compared_with_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
