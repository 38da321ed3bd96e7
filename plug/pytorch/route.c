/* SPDX-License-Identifier: MIT */
/*
 * A std::function<bool(cudaStream_t)> of libstdc++ is four words: two for what it stores, the
 * manager (which copies and destroys that) and the invoker. Such a parameter arrives as the address
 * of an object that the caller destroys when the call returns, so it is copied through its manager.
 * Another C++ library lays it out differently: an object whose last two words are not addresses of
 * code is not libstdc++'s, and the driver is queried instead for the streams being captured.
 * A capture's filter does the same, except that it knows its own capture.
 *
 * `routes` is guarded by `lock`; the copy in a route is made before the allocator can call it and
 * destroyed when it no longer can.
 */
#include "plug/pytorch/route.h"

#include "plug/pytorch/devices.h"
#include "plug/pytorch/locks.h"
#include "plug/pytorch/plug.h"
#include "plug/pytorch/symbol.h"

#include <pthread.h>
#include <string.h>

enum function_operation {
    FUNCTION_CLONE = 2,
    FUNCTION_DESTROY = 3
};

struct function {
    uint64_t stored[2];
    bool (*manage)(void *destination, const void *source, int operation);
    bool (*invoke)(const void *function, void **stream);
};

typedef int (*capture_query)(void *stream, int *state_out); /* cuStreamIsCapturing */

struct route {
    bool taken;
    bool has_function;
    int device;
    struct tarn_pool_id id;
    struct function function; /* if has_function */
    capture_query is_capturing;
};

static pthread_mutex_t *const lock = &tn_torch_locks[TN_TORCH_LOCK_ROUTE];
static struct route routes[TARN_TORCH_ROUTES_MAX];

static bool function_is_readable(const struct function *function)
{
    const void *parts[2];

    memcpy(&parts[0], &function->manage, sizeof parts[0]);
    memcpy(&parts[1], &function->invoke, sizeof parts[1]);
    return tn_torch_is_code(parts[0]) && tn_torch_is_code(parts[1]);
}

/* Called under the allocator's lock. */
static bool route_accepts(void *context, tarn_stream stream)
{
    const struct route *route = context;
    void *handle = (void *)(uintptr_t)stream;
    int state = 0;

    if (route->has_function) {
        return route->function.invoke(&route->function, &handle);
    }
    return route->is_capturing(handle, &state) == 0 && state == 1;
}

static enum tarn_status route_take(struct route **route_out, struct tarn_error *error)
{
    struct route *found = NULL;

    (void)pthread_mutex_lock(lock);
    for (size_t i = 0; !found && i < TARN_TORCH_ROUTES_MAX; i++) {
        found = routes[i].taken ? NULL : &routes[i];
    }
    if (found) {
        *found = (struct route){.taken = true, .device = -1};
        *route_out = found;
    }
    (void)pthread_mutex_unlock(lock);
    return found ? TARN_OK
                 : tn_torch_fail(error, TARN_ERR_LIMIT,
                                 "requests are already routed to 64 pools: end one of them first");
}

static void route_give_back(struct route *route)
{
    if (route->has_function) {
        (void)route->function.manage(&route->function, &route->function, FUNCTION_DESTROY);
    }
    (void)pthread_mutex_lock(lock);
    route->has_function = false;
    route->taken = false;
    (void)pthread_mutex_unlock(lock);
}

static enum tarn_status route_copy_filter(struct route *route, const void *filter,
                                          struct tarn_error *error)
{
    struct function given = {0};

    if (filter) {
        memcpy(&given, filter, sizeof given);
    }
    if (filter && function_is_readable(&given)) {
        route->function.manage = given.manage;
        route->function.invoke = given.invoke;
        (void)given.manage(&route->function, filter, FUNCTION_CLONE);
        route->has_function = true;
        return TARN_OK;
    }
    return tn_torch_function("cuStreamIsCapturing", &route->is_capturing)
               ? TARN_OK
               : tn_torch_fail(error, TARN_ERR_NOT_SUPPORTED,
                               "torch's filter of a pool has an unknown layout, and "
                               "there is no driver to query which stream is being captured");
}

/* Unlinks the route, so that no other thread ends it. NULL if there is none. */
static struct route *route_claim(int device, struct tarn_pool_id id)
{
    struct route *found = NULL;

    (void)pthread_mutex_lock(lock);
    for (size_t i = 0; !found && i < TARN_TORCH_ROUTES_MAX; i++) {
        struct route *const r = &routes[i];

        if (r->taken && r->device == device && r->id.first == id.first &&
            r->id.second == id.second) {
            found = r;
            r->device = -1;
        }
    }
    (void)pthread_mutex_unlock(lock);
    return found;
}

static void route_show(struct route *route, int device, struct tarn_pool_id id)
{
    (void)pthread_mutex_lock(lock);
    route->id = id;
    route->device = device;
    (void)pthread_mutex_unlock(lock);
}

enum tarn_status tn_torch_begin_route(int device, struct tarn_pool_id id, const void *filter,
                                      struct tarn_error *error)
{
    struct tarn_allocator *allocator = NULL;
    struct route *route = NULL;
    enum tarn_status st = tn_torch_allocator(device, &allocator, error);

    if (st == TARN_OK) {
        st = route_take(&route, error);
    }
    if (st) {
        return st;
    }
    st = route_copy_filter(route, filter, error);
    if (st == TARN_OK) {
        st = tarn_allocator_begin_pool(allocator, id, route_accepts, route, error);
    }
    if (st) {
        route_give_back(route);
    } else {
        route_show(route, device, id);
    }
    return st;
}

enum tarn_status tn_torch_end_route(int device, struct tarn_pool_id id, struct tarn_error *error)
{
    struct tarn_allocator *allocator = NULL;
    enum tarn_status st = tn_torch_allocator(device, &allocator, error);

    if (st) {
        return st;
    }
    struct route *const route = route_claim(device, id);

    st = tarn_allocator_end_pool(allocator, id, error);
    if (route && st) {
        route_show(route, device, id); /* still active */
    } else if (route) {
        route_give_back(route);
    }
    return st;
}
