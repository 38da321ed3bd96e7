/* SPDX-License-Identifier: MIT */
#include "analysis/suppress.h"

#include "analysis/pattern_file.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
    WHERE_MAX = 320
};

#define FILE_MAX ((uint64_t)TN_PATTERN_LINES_MAX * TN_PATTERN_LINE_MAX)

/* The pattern as a regular expression, of at most twice its length. */
static void expression_make(const char *pattern, char *out)
{
    for (const char *c = pattern; *c; c++) {
        const bool is_end = (*c == '^' && c == pattern) || (*c == '$' && c[1] == '\0');

        if (*c == '*') {
            *out++ = '.';
        } else if (!is_end && strchr("^$.[]()|+?{}\\", *c)) {
            *out++ = '\\';
        }
        *out++ = *c;
    }
    *out = '\0';
}

static enum tarn_status line_take(void *context, const struct tn_pattern_line *line,
                                  struct tarn_error *error)
{
    struct tarn_suppressions *suppressions = context;
    char expression[2 * TN_PATTERN_LINE_MAX + 1];
    char where[WHERE_MAX];

    if (strcmp(line->word, "leak") != 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "%.*s, line %llu: only \"leak:\" lines are understood; write such as "
                       "\"leak:my_cache\"",
                       tn_utf8_cut(line->file, TN_PATTERN_FILE_SHOWN), line->file,
                       (unsigned long long)line->number);
    }
    struct tn_pattern *pattern = tn_vec_push(&suppressions->patterns);

    if (!pattern) {
        return tn_fail_memory(error);
    }
    expression_make(line->rest, expression);
    (void)snprintf(where, sizeof where, "%.*s, line %llu",
                   tn_utf8_cut(line->file, TN_PATTERN_FILE_SHOWN), line->file,
                   (unsigned long long)line->number);
    const enum tarn_status status = tn_pattern_init(pattern, expression, where, error);

    suppressions->patterns.count -= status != TARN_OK;
    return status;
}

/* Takes over the input. */
static enum tarn_status suppressions_read(struct tn_input *input, const char *name,
                                          struct tarn_suppressions **out, struct tarn_error *error)
{
    struct tarn_suppressions *suppressions = tn_host_alloc_zero(sizeof *suppressions);
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    *out = NULL;
    if (suppressions) {
        tn_vec_init(&suppressions->patterns, sizeof(struct tn_pattern));
        status = tn_pattern_file_read(input, name, "leak:my_cache", line_take, suppressions, error);
    } else {
        status = tn_fail_memory(error);
    }
    tn_input_close(input);
    if (status) {
        tarn_suppressions_destroy(suppressions);
        return status;
    }
    *out = suppressions;
    return TARN_OK;
}

enum tarn_status tn_suppressions_parse(const char *text, size_t size, const char *name,
                                       struct tarn_suppressions **suppressions_out,
                                       struct tarn_error *error)
{
    struct tn_input input;
    const struct tn_unpack_limits limits = {.max_bytes = FILE_MAX};
    const enum tarn_status status = tn_input_open_memory(&input, text, size, &limits, error);

    *suppressions_out = NULL;
    return status ? status : suppressions_read(&input, name, suppressions_out, error);
}

enum tarn_status tarn_suppressions_load(const char *path,
                                        struct tarn_suppressions **suppressions_out,
                                        struct tarn_error *error)
{
    struct tn_input input;
    const struct tn_unpack_limits limits = {.max_bytes = FILE_MAX};
    const enum tarn_status status = tn_input_open(&input, path, &limits, error);

    *suppressions_out = NULL;
    return status ? status : suppressions_read(&input, path, suppressions_out, error);
}

void tarn_suppressions_destroy(struct tarn_suppressions *suppressions)
{
    if (!suppressions) {
        return;
    }
    struct tn_pattern *patterns = suppressions->patterns.items;

    for (size_t i = 0; i < suppressions->patterns.count; i++) {
        tn_pattern_fini(&patterns[i]);
    }
    tn_vec_fini(&suppressions->patterns);
    tn_host_free(suppressions, sizeof *suppressions);
}

static bool frame_suppressed(const struct tarn_suppressions *suppressions,
                             const struct tn_model *model, uint32_t number)
{
    const struct tn_frame *frame = tn_model_frame(model, number);
    const struct tn_pattern *patterns = suppressions->patterns.items;

    for (size_t i = 0; i < suppressions->patterns.count; i++) {
        if (tn_pattern_matches_text(&patterns[i], tn_model_string(model, frame->name).text) ||
            tn_pattern_matches_text(&patterns[i], tn_model_string(model, frame->filename).text)) {
            return true;
        }
    }
    return false;
}

bool tn_suppresses(const struct tarn_suppressions *suppressions, const struct tn_model *model,
                   uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(model, number);

    for (uint32_t i = 0; i < stack.count; i++) {
        if (frame_suppressed(suppressions, model, stack.frames[i])) {
            return true;
        }
    }
    return false;
}
