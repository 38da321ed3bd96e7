/* SPDX-License-Identifier: MIT */
/* Routings to pools, with the contexts of their filters: an allocator uses a context until the
 * routing ends, and does not know when nobody needs it any more. */
#include "devices/devices.h"

#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/sized.h"

static void route_drop(struct tn_kept_route *kept)
{
    if (kept->route.gone) {
        kept->route.gone(kept->route.context);
    }
    tn_host_free(kept, sizeof *kept);
}

static enum tarn_status route_make(int number, struct tarn_pool_id id,
                                   const struct tarn_pool_route *route,
                                   struct tn_kept_route **kept_out, struct tarn_error *error)
{
    struct tn_kept_route *kept = tn_host_alloc_zero(sizeof *kept);

    *kept_out = kept;
    if (!kept) {
        return tn_fail_memory(error);
    }
    if (!tn_sized_read(&kept->route, sizeof kept->route, route)) {
        tn_host_free(kept, sizeof *kept);
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a pool's route needs its struct_size");
    }
    kept->number = number;
    kept->id = id;
    return TARN_OK;
}

/* Takes it out of the list; NULL when it is not there. The lock is held. */
static struct tn_kept_route *route_unlink(struct tarn_devices *devices, int number,
                                          struct tarn_pool_id id)
{
    struct tn_kept_route **link = &devices->routes;

    while (*link && ((*link)->number != number || (*link)->id.first != id.first ||
                     (*link)->id.second != id.second)) {
        link = &(*link)->next;
    }
    struct tn_kept_route *found = *link;

    if (found) {
        *link = found->next;
    }
    return found;
}

/* The lock is held. */
static enum tarn_status route_begin(struct tarn_devices *devices, struct tarn_allocator *allocator,
                                    struct tn_kept_route *kept, struct tarn_error *error)
{
    const struct tarn_pool_route *route = &kept->route;
    const enum tarn_status st =
        tarn_allocator_begin_pool(allocator, kept->id, route->accepts, route->context, error);

    if (st == TARN_OK) {
        kept->next = devices->routes;
        devices->routes = kept;
        if (route->is_capture) {
            (void)!tarn_allocator_begin_capture(allocator, NULL);
        }
    }
    return st;
}

enum tarn_status tarn_devices_begin_pool(struct tarn_devices *devices, int number,
                                         struct tarn_pool_id id,
                                         const struct tarn_pool_route *route,
                                         struct tarn_error *error)
{
    struct tarn_allocator *allocator = NULL;
    struct tn_kept_route *kept = NULL;
    enum tarn_status st = tarn_devices_open(devices, number, &allocator, error);

    st = st ? st : route_make(number, id, route, &kept, error);
    if (st) {
        return st;
    }
    st = tn_devices_lock(devices, error);
    if (tn_always(st == TARN_OK)) { /* as opening could take the lock */
        st = route_begin(devices, allocator, kept, error);
        tn_lock_release(&devices->lock);
    }
    if (st) {
        tn_host_free(kept, sizeof *kept);
    }
    return st;
}

enum tarn_status tarn_devices_end_pool(struct tarn_devices *devices, int number,
                                       struct tarn_pool_id id, struct tarn_error *error)
{
    struct tarn_allocator *allocator = NULL;
    struct tn_kept_route *kept = NULL;
    enum tarn_status st = tarn_devices_open(devices, number, &allocator, error);

    st = st ? st : tn_devices_lock(devices, error);
    if (st) {
        return st;
    }
    st = tarn_allocator_end_pool(allocator, id, error);
    if (st == TARN_OK) {
        kept = route_unlink(devices, number, id);
        if (kept && kept->route.is_capture) {
            (void)!tarn_allocator_end_capture(allocator, NULL);
        }
    }
    tn_lock_release(&devices->lock);
    if (kept) {
        route_drop(kept);
    }
    return st;
}

void tn_devices_drop_routes(struct tarn_devices *devices)
{
    while (devices->routes) {
        struct tn_kept_route *kept = devices->routes;

        devices->routes = kept->next;
        route_drop(kept);
    }
}
