/* SPDX-License-Identifier: MIT */
/* The front of tarn/sleep.h: checks of arguments, and dispatch. */
#include "alloc/engine/allocator.h"
#include "alloc/engine/engine_methods.h"
#include "tarn/sleep.h"

#include <string.h>

enum tarn_status tarn_allocator_sleep(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                      const struct tarn_sleep_options *options,
                                      struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    if (options && options->struct_size != sizeof *options) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the options of a sleep have the wrong size: %u bytes, not %zu",
                       options->struct_size, sizeof *options);
    }
    return methods->sleep ? methods->sleep(allocator, id, options, error)
                          : methods->refuse("sleep", error);
}

enum tarn_status tarn_allocator_wake(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                     struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->wake ? methods->wake(allocator, id, error) : methods->refuse("wake", error);
}

bool tarn_allocator_is_asleep(struct tarn_allocator *allocator, struct tarn_pool_id id)
{
    return allocator->methods->is_asleep && allocator->methods->is_asleep(allocator, id);
}

void tarn_allocator_get_sleep_stats(struct tarn_allocator *allocator,
                                    struct tarn_sleep_stats *stats_out)
{
    const uint32_t asked = stats_out->struct_size;
    struct tarn_sleep_stats stats = {0};

    if (allocator->methods->get_sleep_stats) {
        allocator->methods->get_sleep_stats(allocator, &stats);
    }
    memcpy(stats_out, &stats, asked < sizeof stats ? asked : sizeof stats);
    stats_out->struct_size = asked;
}
