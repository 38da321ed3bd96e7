/* SPDX-License-Identifier: MIT */
#include "alloc/engine/engine_forked.h"

#include "alloc/engine/engine_methods.h"

static enum tarn_status forked_refuse(const char *what, struct tarn_error *error)
{
    (void)what;
    return tn_forked_refuse(error);
}

static void forked_destroy(struct tarn_allocator *allocator)
{
    (void)allocator; /* its memory may be half changed, and is the parent's to give back */
}

static enum tarn_status forked_alloc(struct tarn_allocator *allocator, uint64_t size,
                                     tarn_stream stream, tarn_ptr *ptr_out,
                                     struct tarn_error *error)
{
    (void)allocator;
    (void)size;
    (void)stream;
    (void)ptr_out;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                    struct tarn_error *error)
{
    (void)allocator;
    (void)ptr;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_record_stream(struct tarn_allocator *allocator, tarn_ptr ptr,
                                             tarn_stream stream, struct tarn_error *error)
{
    (void)allocator;
    (void)ptr;
    (void)stream;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_empty_cache(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                           struct tarn_error *error)
{
    (void)allocator;
    (void)id;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_trim(struct tarn_allocator *allocator, uint64_t target,
                                    struct tarn_error *error)
{
    (void)allocator;
    (void)target;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_base_allocation(struct tarn_allocator *allocator, tarn_ptr ptr,
                                               tarn_ptr *base_out, uint64_t *size_out,
                                               struct tarn_error *error)
{
    (void)allocator;
    (void)ptr;
    (void)base_out;
    (void)size_out;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_cache_info(struct tarn_allocator *allocator,
                                          uint64_t *largest_in_out, struct tarn_error *error)
{
    (void)allocator;
    (void)largest_in_out;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                           struct tarn_error *error)
{
    (void)allocator;
    (void)enabled;
    return tn_forked_refuse(error);
}

static bool forked_is_enabled(struct tarn_allocator *allocator)
{
    (void)allocator;
    return false;
}

static enum tarn_status forked_set_fraction(struct tarn_allocator *allocator, double fraction,
                                            struct tarn_error *error)
{
    (void)allocator;
    (void)fraction;
    return tn_forked_refuse(error);
}

static uint64_t forked_get_limit(struct tarn_allocator *allocator)
{
    (void)allocator;
    return 0;
}

static void forked_get_config(struct tarn_allocator *allocator, struct tarn_config *config_out)
{
    (void)allocator;
    tarn_config_init(config_out);
}

/* The front refuses before it gets here. */
static void forked_set_config(struct tarn_allocator *allocator, const struct tarn_config *config)
{
    (void)allocator;
    (void)config;
}

static void forked_get_stats(struct tarn_allocator *allocator, struct tarn_stats *stats_out)
{
    (void)allocator;
    (void)stats_out; /* comes in all zero */
}

static void forked_reset_stats(struct tarn_allocator *allocator)
{
    (void)allocator;
}

static uint64_t forked_check(struct tarn_allocator *allocator, struct tarn_findings *findings)
{
    (void)allocator;
    (void)findings;
    return 0;
}

static enum tarn_status forked_walk(struct tarn_allocator *allocator,
                                    const struct tarn_pool_id *pool,
                                    const struct tarn_walker *walker, struct tarn_error *error)
{
    (void)allocator;
    (void)pool;
    (void)walker;
    return tn_forked_refuse(error);
}

static enum tarn_status forked_look(struct tarn_allocator *allocator,
                                    const struct tarn_pool_id *pool, const struct tn_look *look,
                                    struct tarn_error *error)
{
    (void)allocator;
    (void)pool;
    (void)look;
    return tn_forked_refuse(error);
}

/* Entries that are NULL are refused by the front. */
static const struct tn_engine_methods forked_methods = {
    .name = "forked",
    .refuse = forked_refuse,
    .destroy = forked_destroy,
    .alloc = forked_alloc,
    .free = forked_free,
    .record_stream = forked_record_stream,
    .empty_cache = forked_empty_cache,
    .trim = forked_trim,
    .base_allocation = forked_base_allocation,
    .cache_info = forked_cache_info,
    .set_enabled = forked_set_enabled,
    .is_enabled = forked_is_enabled,
    .set_fraction = forked_set_fraction,
    .get_limit = forked_get_limit,
    .get_config = forked_get_config,
    .set_config = forked_set_config,
    .get_stats = forked_get_stats,
    .reset_peak_stats = forked_reset_stats,
    .reset_accumulated_stats = forked_reset_stats,
    .check = forked_check,
    .walk = forked_walk,
    .look = forked_look,
};

/* In the child. */
static void allocator_forked(struct tn_fork_watch *watch)
{
    TN_TREE_ENTRY(watch, struct tarn_allocator, fork)->methods = &forked_methods;
}

void tn_forked_watch(struct tarn_allocator *allocator)
{
    tn_fork_watch_init(&allocator->fork, allocator_forked);
}
