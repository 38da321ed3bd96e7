/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "tarn/stats.h"

static const char *const names[] = {"tiny",         "gpt2_varlen",   "gpt2_varlen_expandable",
                                    "resnet_sizes", "multistream",   "cudagraph",
                                    "oom",          "llama_generate"};

struct seen {
    json_t *recorded; /* as PyTorch wrote it */
    void *at;         /* iterator: the key that comes next */
    int64_t values[256];
    size_t count;
};

static void see(void *context, const char *key, int64_t value)
{
    struct seen *seen = context;

    assert_non_null(seen->at);
    assert_string_equal(key, json_object_iter_key(seen->at));
    seen->at = json_object_iter_next(seen->recorded, seen->at);
    seen->values[seen->count++] = value;
}

static json_t *recorded_file(const char *name, const char *kind)
{
    char path[128];

    (void)snprintf(path, sizeof path, "snapshots/%s.%s", name, kind);
    struct test_file file = test_file_read(path);
    json_t *recorded = json_loads((const char *)file.bytes, 0, NULL);

    assert_non_null(recorded);
    free(file.bytes);
    return recorded;
}

/* The recorded value of a flat key, from either form. */
static int64_t recorded(const struct seen *seen, const char *key)
{
    const json_t *value = json_object_get(seen->recorded, key);
    char part[64];

    for (const json_t *level = seen->recorded; !value && level; key += strcspn(key, ".") + 1) {
        (void)snprintf(part, sizeof part, "%.*s", (int)strcspn(key, "."), key);
        level = json_object_get(level, part);
        value = json_is_integer(level) ? level : NULL;
    }
    assert_non_null(value);
    return json_integer_value(value);
}

static struct tarn_stat recorded_stat(const struct seen *seen, const char *name)
{
    static const char *const parts[] = {"current", "peak", "allocated", "freed"};
    int64_t values[4];

    for (int i = 0; i < 4; i++) {
        char key[64];

        (void)snprintf(key, sizeof key, "%s.%s", name, parts[i]);
        values[i] = recorded(seen, key);
    }
    return (struct tarn_stat){values[0], values[1], values[2], values[3]};
}

static struct tarn_stats recorded_stats(const struct seen *seen)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            char name[64];

            (void)snprintf(name, sizeof name, "%s.%s",
                           tarn_stat_kind_name((enum tarn_stat_kind)kind),
                           tarn_stat_pool_name((enum tarn_stat_pool)pool));
            stats.by_pool[kind][pool] = recorded_stat(seen, name);
        }
    }
    stats.oversize_allocations = recorded_stat(seen, "oversize_allocations");
    stats.oversize_segments = recorded_stat(seen, "oversize_segments");
    stats.num_alloc_retries = recorded(seen, "num_alloc_retries");
    stats.num_ooms = recorded(seen, "num_ooms");
    stats.num_sync_all_streams = recorded(seen, "num_sync_all_streams");
    stats.num_device_alloc = recorded(seen, "num_device_alloc");
    stats.num_device_free = recorded(seen, "num_device_free");
    stats.max_split_size = recorded(seen, "max_split_size");
    return stats;
}

/* Every key and value of torch.cuda.memory_stats(), in its order. */
static void keys_are_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct seen seen = {.recorded = recorded_file(names[i], "memory_stats.json")};
        const char *key;
        json_t *value;
        size_t at = 0;

        seen.at = json_object_iter(seen.recorded);
        const struct tarn_stats stats = recorded_stats(&seen);

        tarn_stats_walk(&stats, see, &seen);
        assert_null(seen.at);
        json_object_foreach(seen.recorded, key, value)
        {
            assert_int_equal(seen.values[at++], json_integer_value(value));
        }
        json_decref(seen.recorded);
    }
}

/* The text that Python's json.dumps writes of such a dictionary. */
struct dump {
    char text[8192];
    size_t length;
    bool first; /* on its level */
};

static void dump_add(struct dump *dump, const char *text)
{
    assert_true(strlen(text) < sizeof dump->text - dump->length);
    memcpy(dump->text + dump->length, text, strlen(text) + 1);
    dump->length += strlen(text);
}

static void dump_key(struct dump *dump, const char *key)
{
    dump_add(dump, dump->first ? "\"" : ", \"");
    dump_add(dump, key);
    dump_add(dump, "\": ");
    dump->first = false;
}

static void dump_begin(void *context, const char *key)
{
    struct dump *dump = context;

    dump_key(dump, key);
    dump_add(dump, "{");
    dump->first = true;
}

static void dump_value(void *context, const char *key, int64_t value)
{
    char number[32];

    (void)snprintf(number, sizeof number, "%lld", (long long)value);
    dump_key(context, key);
    dump_add(context, number);
}

static void dump_end(void *context)
{
    struct dump *dump = context;

    dump_add(dump, "}");
    dump->first = false;
}

/* torch.cuda.memory_stats_as_nested_dict(), written by Python, byte for byte. */
static void levels_are_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct dump dump = {.text = "{", .length = 1, .first = true};
        const struct tarn_stats_visitor visitor = {&dump, dump_begin, dump_value, dump_end};
        char path[128];
        struct seen seen = {.recorded = recorded_file(names[i], "nested_stats.json")};
        const struct tarn_stats stats = recorded_stats(&seen);

        (void)snprintf(path, sizeof path, "snapshots/%s.nested_stats.json", names[i]);
        struct test_file golden = test_file_read(path);

        tarn_stats_walk_nested(&stats, &visitor);
        dump_end(&dump);
        assert_string_equal(dump.text, (const char *)golden.bytes);
        json_decref(seen.recorded);
        free(golden.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_pytorchs),
        cmocka_unit_test(levels_are_pytorchs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
