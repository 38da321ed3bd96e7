/* SPDX-License-Identifier: MIT */
/* The decoder of snapshots, driven as a reader drives it: containers are built from values, no file
 * form in between. */
#ifndef TESTS_SUPPORT_DECODE_RIG_H
#define TESTS_SUPPORT_DECODE_RIG_H

#include "support/test.h"

#include "snapshot/decode.h"
#include "snapshot/warning.h"
#include "tarn/host.h"

#include <string.h>

struct fixture {
    struct tn_model model;
    struct tn_decoder decoder;
    struct tarn_error error;
};

static inline void start(struct fixture *f)
{
    const struct tn_decode_limits limits = {.max_depth = 8, .max_frames = 16};

    f->error = (struct tarn_error){0};
    assert_int_equal(tn_model_init(&f->model, 0), TARN_OK);
    assert_int_equal(tn_decoder_init(&f->decoder, &f->model, &limits, &f->error), TARN_OK);
}

static inline void end(struct fixture *f)
{
    tn_decoder_fini(&f->decoder);
    tn_model_fini(&f->model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static inline struct tn_value num(int64_t number)
{
    return tn_value_integer(0, number);
}

static inline struct tn_value str(struct fixture *f, const char *text)
{
    uint32_t string;

    assert_int_equal(tn_model_add_string(&f->model, text, strlen(text), &string), TARN_OK);
    return tn_value_make(TN_VALUE_STRING, 77, string);
}

static inline struct tn_value new_list(struct fixture *f)
{
    struct tn_value value;

    assert_int_equal(tn_decode_new(&f->decoder, TN_OBJECT_EMPTY_LIST, 55, &value), TARN_OK);
    return value;
}

static inline struct tn_value new_dict(struct fixture *f)
{
    struct tn_value value;

    assert_int_equal(tn_decode_new(&f->decoder, TN_OBJECT_EMPTY_DICT, 66, &value), TARN_OK);
    return value;
}

static inline struct tn_value pair(struct fixture *f, int64_t a, int64_t b)
{
    const struct tn_value items[2] = {num(a), num(b)};
    struct tn_value value;

    assert_int_equal(tn_decode_tuple(&f->decoder, items, 2, 44, &value), TARN_OK);
    return value;
}

static inline enum tarn_status try_set(struct fixture *f, struct tn_value dict, const char *key,
                                       struct tn_value value)
{
    const struct tn_value items[2] = {str(f, key), value};

    return tn_decode_set_items(&f->decoder, dict, items, 1);
}

static inline void set(struct fixture *f, struct tn_value dict, const char *key,
                       struct tn_value value)
{
    assert_int_equal(try_set(f, dict, key, value), TARN_OK);
    assert_string_equal(f->error.text, "");
}

static inline void append(struct fixture *f, struct tn_value list, struct tn_value item)
{
    assert_int_equal(tn_decode_append(&f->decoder, list, &item, 1), TARN_OK);
}

static inline struct tn_value list_of(struct fixture *f, struct tn_value item)
{
    const struct tn_value list = new_list(f);

    append(f, list, item);
    return list;
}

static inline struct tn_value frame(struct fixture *f, int64_t line)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "name", str(f, "main"));
    set(f, value, "filename", str(f, "a.py"));
    set(f, value, "line", num(line));
    return value;
}

static inline struct tn_value block(struct fixture *f, int64_t size, const char *state)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "size", num(size));
    set(f, value, "state", str(f, state));
    return value;
}

static inline struct tn_value entry(struct fixture *f, const char *action, int64_t address)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "action", str(f, action));
    set(f, value, "addr", num(address));
    set(f, value, "size", num(512));
    return value;
}

static inline struct tn_value segment(struct fixture *f, struct tn_value blocks)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "address", num(4096));
    set(f, value, "total_size", num(3072));
    set(f, value, "blocks", blocks);
    return value;
}

static inline const char *warned(const struct fixture *f, size_t i)
{
    assert_true(i < f->model.warning_count);
    return f->model.warnings[i].text;
}

static inline uint64_t warnings_of(const struct tn_model *model, enum tn_warning_kind kind)
{
    uint64_t count = 0;

    for (size_t i = 0; i < model->warning_count; i++) {
        count += model->warnings[i].kind == (uint32_t)kind ? model->warnings[i].count : 0;
    }
    return count;
}

#endif
