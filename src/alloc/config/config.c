/* SPDX-License-Identifier: MIT */
/* Implements tarn/config.h: defaults and changes. Reading is config_parse.c, printing
 * config_format.c. */
#include "tarn/config.h"

#include "alloc/config/config_parse.h"
#include "alloc/config/size_class.h"
#include "base/errinfo.h"
#include "base/sized.h"

#include <string.h>

enum tarn_status tn_config_write(const struct tarn_config *config, struct tarn_config *config_out,
                                 size_t size, struct tarn_error *error)
{
    if (!config_out || size < sizeof config->struct_size || size > UINT32_MAX) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "settings need a struct and its size, not one of %zu bytes", size);
    }
    tn_sized_write(config_out, (uint32_t)size, config, sizeof *config);
    return TARN_OK;
}

static struct tarn_config config_defaults(void)
{
    return (struct tarn_config){
        .struct_size = sizeof(struct tarn_config),
        .max_split_size = TARN_SIZE_UNLIMITED,
        .max_non_split_rounding = TN_LARGE_BUFFER,
        .large_segment_size = TN_LARGE_BUFFER,
        .memory_fraction = 1.0,
        .pinned_num_register_threads = 1,
        .max_cached = TARN_SIZE_UNLIMITED,
        .pinned_max_round_threshold = TARN_SIZE_UNLIMITED,
        .pinned_max_cached_size = TARN_SIZE_UNLIMITED,
    };
}

enum tarn_status tarn_config_init_sized(struct tarn_config *config_out, size_t size)
{
    const struct tarn_config defaults = config_defaults();

    return tn_config_write(&defaults, config_out, size, NULL);
}

enum tarn_status tn_config_read(const struct tarn_config *given, struct tarn_config *config_out,
                                struct tarn_error *error)
{
    *config_out = config_defaults();
    if (given && !tn_sized_read(config_out, sizeof *config_out, given)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "settings were not initialised with tarn_config_init");
    }
    return TARN_OK;
}

/* What PyTorch resets at the start of every parse; max_non_split_rounding, which depends on
 * large_segment_size, is reset in tarn_config_update. Must agree with `resets` in
 * config_table.c. */
static void config_reset(struct tarn_config *config)
{
    config->max_split_size = TARN_SIZE_UNLIMITED;
    config->garbage_collection_threshold = 0.0;
    memset(config->roundup_power2_divisions, 0, sizeof config->roundup_power2_divisions);
}

/* Applies the text to complete settings; NULL only resets. */
static enum tarn_status config_change(const char *text, struct tarn_config *next,
                                      struct tarn_error *error)
{
    config_reset(next);
    if (text) {
        const size_t length = strnlen(text, sizeof next->text);

        if (length == sizeof next->text) {
            return tn_fail_at(error, TARN_ERR_CONFIG, (int64_t)length,
                              "settings are longer than %zu bytes", length - 1);
        }
        tn_config_apply_early(text, next);
        memcpy(next->text, text, length + 1);
    }
    next->max_non_split_rounding = next->large_segment_size;
    return text ? tn_config_apply(text, next, error) : TARN_OK;
}

enum tarn_status tarn_config_update(const char *text, struct tarn_config *config_in_out,
                                    struct tarn_error *error)
{
    struct tarn_config next;

    if (!config_in_out) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "settings were not initialised with tarn_config_init");
    }
    enum tarn_status st = tn_config_read(config_in_out, &next, error);

    st = st ? st : config_change(text, &next, error);
    return st ? st : tn_config_write(&next, config_in_out, config_in_out->struct_size, error);
}

enum tarn_status tarn_config_parse_sized(const char *text, struct tarn_config *config_out,
                                         size_t size, struct tarn_error *error)
{
    struct tarn_config config = config_defaults();
    const enum tarn_status st = config_change(text, &config, error);

    return st ? st : tn_config_write(&config, config_out, size, error);
}
