/* SPDX-License-Identifier: MIT */
#include "measured.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keys of the file in display order, and the counters of the replay that they match. */
static const struct known_figure {
    const char *name;
    size_t at; /* offset of an int64_t in struct tarn_stats */
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

/* A run of the list; both names are NULL for an invalid element. */
struct measured_run {
    const json_t *figures;
    const char *workload;
    const char *conf;
};

static struct measured_run run_get(const json_t *list, size_t index)
{
    const json_t *object = json_array_get(list, index);
    struct measured_run run = {
        .figures = object,
        .workload = json_string_value(json_object_get(object, "workload")),
        .conf = json_string_value(json_object_get(object, "conf")),
    };

    if (!run.workload || !run.conf) {
        run = (struct measured_run){0};
    }
    return run;
}

/* The run of that workload and, unless NULL, those settings. */
static const json_t *find_run(const json_t *list, const char *workload, const char *conf)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct measured_run run = run_get(list, i);

        if (run.workload && strcmp(run.workload, workload) == 0 &&
            (!conf || strcmp(run.conf, conf) == 0)) {
            return run.figures;
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

__attribute__((format(printf, 3, 4))) static enum tarn_status
measured_fail(struct tarn_error *error, enum tarn_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    error->status = status;
    error->offset = -1;
    return status;
}

static void error_append(struct tarn_error *error, const char *before, const char *word)
{
    const size_t used = strlen(error->text);

    (void)snprintf(error->text + used, sizeof error->text - used, "%s\"%s\"", before, word);
}

/* Appends the available choices: the distinct workloads, or the settings of one workload. */
static void error_append_choices(struct tarn_error *error, const json_t *list, const char *workload)
{
    const char *before = " ";

    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct measured_run run = run_get(list, i);

        if (workload && run.workload && strcmp(run.workload, workload) == 0) {
            error_append(error, before, run.conf);
            before = ", ";
        } else if (!workload && run.workload && find_run(list, run.workload, NULL) == run.figures) {
            error_append(error, before, run.workload);
            before = ", ";
        }
    }
}

/* Explains why no run was found, and lists the existing ones. */
static enum tarn_status no_such_run(const json_t *list, const char *path, const char *workload,
                                    const char *conf, struct tarn_error *error)
{
    bool any = false;

    for (size_t i = 0; i < json_array_size(list) && !any; i++) {
        any = run_get(list, i).workload != NULL;
    }
    if (!any) {
        return measured_fail(error, TARN_ERR_FORMAT,
                             "%s has no runs: it must be a JSON list of objects with \"workload\", "
                             "\"conf\" and figures",
                             path);
    }
    if (find_run(list, workload, NULL)) {
        (void)measured_fail(error, TARN_ERR_NOT_FOUND,
                            "%s has no run of workload \"%s\" with settings \"%s\"; give "
                            "--conf one of:",
                            path, workload, conf);
        error_append_choices(error, list, workload);
    } else {
        (void)measured_fail(error, TARN_ERR_NOT_FOUND,
                            "%s has no run of workload \"%s\"; give --workload one of:", path,
                            workload);
        error_append_choices(error, list, NULL);
    }
    return TARN_ERR_NOT_FOUND;
}

enum tarn_status cli_measured_read(const char *path, const char *workload, const char *conf,
                                   const struct tarn_stats *stats,
                                   struct cli_measured *measured_out, struct tarn_error *error)
{
    json_error_t json_error;
    enum tarn_status status = TARN_OK;

    errno = 0;
    json_t *list = json_load_file(path, 0, &json_error);
    if (!list) {
        const bool opened = json_error_code(&json_error) != json_error_cannot_open_file;

        return measured_fail(error,
                             opened            ? TARN_ERR_FORMAT
                             : errno == ENOMEM ? TARN_ERR_HOST_MEMORY
                                               : TARN_ERR_IO,
                             "%s cannot be read: %s", path, json_error.text);
    }
    const json_t *run = find_run(list, workload, conf);

    if (run) {
        pair_figures(run, stats, measured_out);
    } else {
        status = no_such_run(list, path, workload, conf, error);
    }
    json_decref(list);
    return status;
}
