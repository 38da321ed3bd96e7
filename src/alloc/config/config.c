/* SPDX-License-Identifier: MIT */
/* Implements tarn/config.h: defaults and changes. Reading is config_parse.c, printing
 * config_format.c. */
#include "tarn/config.h"

#include "alloc/config/config_parse.h"
#include "alloc/config/size_class.h"
#include "base/errinfo.h"

#include <string.h>

void tarn_config_init(struct tarn_config *config_out)
{
    memset(config_out, 0, sizeof *config_out);
    config_out->struct_size = sizeof *config_out;
    config_out->max_split_size = TARN_SIZE_UNLIMITED;
    config_out->max_non_split_rounding = TN_LARGE_BUFFER;
    config_out->large_segment_size = TN_LARGE_BUFFER;
    config_out->memory_fraction = 1.0;
    config_out->pinned_num_register_threads = 1;
    config_out->max_cached = TARN_SIZE_UNLIMITED;
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

enum tarn_status tarn_config_update(const char *text, struct tarn_config *config_in_out,
                                    struct tarn_error *error)
{
    struct tarn_config next;
    enum tarn_status st = TARN_OK;

    if (!config_in_out || config_in_out->struct_size != sizeof next) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "settings were not initialised with tarn_config_init");
    }
    next = *config_in_out;
    config_reset(&next);
    if (text) {
        const size_t length = strnlen(text, sizeof next.text);

        if (length == sizeof next.text) {
            return tn_fail_at(error, TARN_ERR_CONFIG, (int64_t)length,
                              "settings are longer than %zu bytes", length - 1);
        }
        tn_config_apply_early(text, &next);
        memcpy(next.text, text, length + 1);
    }
    next.max_non_split_rounding = next.large_segment_size;
    if (text) {
        st = tn_config_apply(text, &next, error);
    }
    if (st == TARN_OK) {
        *config_in_out = next;
    }
    return st;
}

enum tarn_status tarn_config_parse(const char *text, struct tarn_config *config_out,
                                   struct tarn_error *error)
{
    struct tarn_config config;
    enum tarn_status st;

    if (!config_out) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "no struct for the settings");
    }
    tarn_config_init(&config);
    st = tarn_config_update(text, &config, error);
    if (st == TARN_OK) {
        *config_out = config;
    }
    return st;
}
