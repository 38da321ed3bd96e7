/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as rules of categories and as suppressions of leaks. What is taken is used on a trace:
 * every entry has a category that the rules know. Nothing may leak.
 */
#include "fuzz_target.h"

#include "analysis/rules.h"
#include "analysis/suppress.h"
#include "tarn/host.h"
#include "tarn/report.h"
#include "tarn/snapshot.h"

#include <stdlib.h>
#include <string.h>

static const char trace[] =
    "{\"segments\":[],\"device_traces\":[["
    "{\"action\":\"alloc\",\"addr\":512,\"size\":9,\"stream\":0,\"frames\":["
    "{\"filename\":\"/torch/optim/adam.py\",\"line\":3,\"name\":\"step\"},"
    "{\"filename\":\"train.py\",\"line\":77,\"name\":\"main\"}]},"
    "{\"action\":\"free_completed\",\"addr\":512,\"size\":9,\"stream\":0},"
    "{\"action\":\"alloc\",\"addr\":512,\"size\":9,\"stream\":0,\"frames\":["
    "{\"filename\":\"model.cpp\",\"line\":0,\"name\":\"at::native::empty<float>(long)\"}]}]]}";

static void must(bool right)
{
    if (!right) {
        abort();
    }
}

static enum tarn_status drop(void *context, const char *bytes, size_t size)
{
    size_t *written = context;

    (void)bytes;
    *written += size;
    return TARN_OK;
}

static void use_rules(const struct tarn_snapshot *snapshot, const struct tarn_rules *rules)
{
    struct tarn_categories *categories = NULL;

    must(tarn_categories_create(snapshot, 0, rules, &categories, NULL) == TARN_OK);
    for (uint64_t i = 0; i < 3; i++) {
        must(tarn_categories_have(categories, tarn_categories_get(categories, i)));
    }
    tarn_categories_destroy(categories);
}

static void use_suppressions(const struct tarn_snapshot *snapshot,
                             const struct tarn_suppressions *suppressions)
{
    size_t written = 0;
    const struct tarn_writer writer = {.context = &written, .write = drop};
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .suppressions = suppressions};

    must(tarn_report_leaks(snapshot, &options, &writer, NULL) == TARN_OK && written > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_rules *rules = NULL;
    struct tarn_suppressions *suppressions = NULL;

    must(tarn_snapshot_load_memory(trace, sizeof trace - 1, NULL, &snapshot, NULL) == TARN_OK);
    if (tn_rules_parse((const char *)data, size, "input", &rules, NULL) == TARN_OK) {
        use_rules(snapshot, rules);
    }
    if (tn_suppressions_parse((const char *)data, size, "input", &suppressions, NULL) == TARN_OK) {
        use_suppressions(snapshot, suppressions);
    }
    tarn_suppressions_destroy(suppressions);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
    must(tarn_host_get_usage().live_bytes == 0);
    return 0;
}
