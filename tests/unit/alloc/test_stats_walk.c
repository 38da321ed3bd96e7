/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "tarn/stats.h"

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

/* The recorded value of a key into its field. */
static int64_t recorded(const struct seen *seen, const char *key)
{
    const json_t *value = json_object_get(seen->recorded, key);

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
    static const char *const names[] = {"tiny", "oom", "gpt2_varlen_expandable", "multistream"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct seen seen = {.count = 0};
        char path[128];
        const char *key;
        json_t *value;
        size_t at = 0;

        (void)snprintf(path, sizeof path, "snapshots/%s.memory_stats.json", names[i]);
        struct test_file file = test_file_read(path);

        seen.recorded = json_loads((const char *)file.bytes, 0, NULL);
        assert_non_null(seen.recorded);
        seen.at = json_object_iter(seen.recorded);
        const struct tarn_stats stats = recorded_stats(&seen);

        tarn_stats_walk(&stats, see, &seen);
        assert_null(seen.at);
        json_object_foreach(seen.recorded, key, value)
        {
            assert_int_equal(seen.values[at++], json_integer_value(value));
        }
        json_decref(seen.recorded);
        free(file.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_pytorchs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
