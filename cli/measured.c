/* SPDX-License-Identifier: MIT */
#include "measured.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Keys of the file, in the order in which they are shown, and where the replay has them. */
static const struct known_figure {
    const char *name;
    size_t at; /* of an int64_t in struct tarn_stats */
} known_figures[] = {
#define PEAK(kind, key)                                                                            \
    {                                                                                              \
        key ".all.peak", offsetof(struct tarn_stats, by_pool[kind][TARN_STAT_ALL].peak)            \
    }
    PEAK(TARN_STAT_RESERVED_BYTES, "reserved_bytes"),
    PEAK(TARN_STAT_ACTIVE_BYTES, "active_bytes"),
    PEAK(TARN_STAT_ALLOCATED_BYTES, "allocated_bytes"),
    PEAK(TARN_STAT_REQUESTED_BYTES, "requested_bytes"),
    PEAK(TARN_STAT_SEGMENT, "segment"),
#undef PEAK
    {"num_device_alloc", offsetof(struct tarn_stats, num_device_alloc)},
    {"num_device_free", offsetof(struct tarn_stats, num_device_free)},
    {"num_alloc_retries", offsetof(struct tarn_stats, num_alloc_retries)},
    {"num_ooms", offsetof(struct tarn_stats, num_ooms)},
};

static const json_t *find_run(const json_t *list, const char *workload, const char *conf)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *run = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(run, "workload"));
        const char *settings = json_string_value(json_object_get(run, "conf"));

        if (name && settings && strcmp(name, workload) == 0 && strcmp(settings, conf) == 0) {
            return run;
        }
    }
    return NULL;
}

static void pair_figures(const json_t *run, const struct tarn_stats *stats,
                         struct cli_measured *measured)
{
    measured->count = 0;
    for (size_t i = 0; i < sizeof known_figures / sizeof known_figures[0]; i++) {
        const json_t *value = json_object_get(run, known_figures[i].name);

        if (json_is_integer(value)) {
            struct cli_measured_figure *figure = &measured->figures[measured->count++];

            figure->name = known_figures[i].name;
            figure->measured = json_integer_value(value);
            memcpy(&figure->replayed, (const char *)stats + known_figures[i].at,
                   sizeof figure->replayed);
        }
    }
}

bool cli_measured_read(const char *path, const char *workload, const char *conf,
                       const struct tarn_stats *stats, struct cli_measured *measured_out,
                       char *error, size_t error_size)
{
    json_error_t json_error;
    json_t *list = json_load_file(path, 0, &json_error);
    const json_t *run = NULL;

    if (!list) {
        (void)snprintf(error, error_size, "%s cannot be read: %s", path, json_error.text);
        return false;
    }
    run = find_run(list, workload, conf);
    if (run) {
        pair_figures(run, stats, measured_out);
    } else {
        (void)snprintf(error, error_size, "%s has no run of workload \"%s\" with settings \"%s\"",
                       path, workload, conf);
    }
    json_decref(list);
    return run != NULL;
}
