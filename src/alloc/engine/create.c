/* SPDX-License-Identifier: MIT */
/* Creates and destroys allocators; chooses the engine. */
#include "alloc/config/config_parse.h"
#include "alloc/engine/allocator.h"
#include "alloc/engine/engine_async.h"
#include "alloc/engine/engine_forked.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/engine/engine_uncached.h"
#include "alloc/engine/pluggable.h"
#include "alloc/engine/watch_source.h"

/* Which engine those settings ask for. PyTorch looks at PYTORCH_NO_CUDA_MEMORY_CACHING in the
 * caching allocator only. */
static enum tarn_status engine_create(struct tarn_device *device, const struct tarn_config *config,
                                      struct tarn_allocator **allocator_out)
{
    if (config->backend == TARN_BACKEND_ASYNC) {
        return tn_async_create(device, config, allocator_out);
    }
    return config->no_caching ? tn_uncached_create(device, config, allocator_out)
                              : tn_native_create(device, config, allocator_out);
}

void tn_allocator_begin(struct tarn_allocator *allocator)
{
    allocator->backend = allocator->methods->backend;
    tn_ipc_cache_init(&allocator->opened, allocator->device);
    tn_forked_watch(allocator);
}

/* An allocator over `plugged`, or one of libtarn's own if that is NULL. */
static enum tarn_status any_create(const struct tarn_pluggable *plugged, struct tarn_device *device,
                                   const struct tarn_config *config,
                                   struct tarn_allocator **allocator_out, struct tarn_error *error)
{
    struct tarn_config known;

    if (!device || !allocator_out) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "an allocator needs a device");
    }
    enum tarn_status st = tn_config_read(config, &known, error);

    if (st == TARN_OK && !plugged) {
        st = tn_config_check(&known, device, error);
    }
    if (st) {
        return st;
    }
    st = plugged ? tn_pluggable_create(plugged, device, allocator_out)
                 : engine_create(device, &known, allocator_out);
    if (st) {
        return tn_fail_memory(error);
    }
    tn_allocator_begin(*allocator_out);
    tn_watch_source_begin(*allocator_out, &known);
    return TARN_OK;
}

enum tarn_status tn_allocator_create_own(struct tarn_device *device,
                                         const struct tarn_config *config,
                                         struct tarn_allocator **allocator_out,
                                         struct tarn_error *error)
{
    return any_create(NULL, device, config, allocator_out, error);
}

enum tarn_status tarn_allocator_create(struct tarn_device *device, const struct tarn_config *config,
                                       struct tarn_allocator **allocator_out,
                                       struct tarn_error *error)
{
    const enum tarn_status st =
        any_create(tn_current_acquire(), device, config, allocator_out, error);

    if (st) {
        tn_current_release();
        return st;
    }
    tn_assert(*allocator_out);
    (*allocator_out)->is_current = true;
    return TARN_OK;
}

static enum tarn_status settings_read(const char *settings, struct tarn_config *config_out,
                                      struct tarn_error *error)
{
    return settings ? tarn_config_parse(settings, config_out, error)
                    : tarn_config_from_env(config_out, error);
}

enum tarn_status tarn_allocator_create_on(const char *device, const char *settings,
                                          struct tarn_allocator **allocator_out,
                                          struct tarn_error *error)
{
    struct tarn_device *opened = NULL;
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    enum tarn_status st = settings_read(settings, &config, error);

    st = st ? st : tarn_device_open(device, &opened, error);
    st = st ? st : tarn_allocator_create(opened, &config, &allocator, error);
    if (st) {
        tarn_device_close(opened);
        return st;
    }
    tn_assert(allocator);
    allocator->owns_device = true;
    *allocator_out = allocator;
    return TARN_OK;
}

void tarn_allocator_destroy(struct tarn_allocator *allocator)
{
    if (allocator) {
        struct tarn_device *const owned = allocator->owns_device ? allocator->device : NULL;
        const bool was_current = allocator->is_current;

        tn_watch_source_end(allocator);
        if (!tn_fork_passed(&allocator->fork)) {
            tn_fork_watch_fini(&allocator->fork);
            tn_ipc_cache_fini(&allocator->opened);
        }
        allocator->methods->destroy(allocator);
        tarn_device_close(owned);
        if (was_current) {
            tn_current_release();
        }
    }
}
