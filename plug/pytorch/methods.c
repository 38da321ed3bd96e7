/* SPDX-License-Identifier: MIT */
/*
 * Implements methods for which torch's pluggable allocator throws "does not yet support ...". They
 * have no setters, but they are virtual: the object gets a copy of its vtable in which they are
 * replaced.
 *
 * A slot is identified by its contents, the address of the method with a given mangled name, which
 * also determines its parameters. Methods that only the base class has cannot be found this way:
 * they are inline there. Five lie between releasePool and shareIpcHandle, in this order in all
 * versions that have five; if there are not five, they are left alone. Six lie behind getIpcDevPtr:
 * the second is recordHistory, and two or three observers later comes enablePeerAccess. With any
 * other layout they are left alone as well.
 *
 * On machines with an unknown calling convention (getIpcDevPtr), ours is NULL and torch's stays.
 *
 * The copy is made once, before CUDA starts (tarn_torch_take_methods says so), and never changed.
 */
#include "plug/pytorch/devices.h"
#include "plug/pytorch/failure.h"
#include "plug/pytorch/locks.h"
#include "plug/pytorch/marks.h"
#include "plug/pytorch/plug.h"
#include "plug/pytorch/share.h"
#include "plug/pytorch/symbol.h"
#include "tarn/peer.h"

#include <pthread.h>
#include <string.h>

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define CLASS  "5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator"

enum {
    TABLE_HEAD = 2, /* words before the functions: offset to the top, type */
    TABLE_MAX = 192
};

static void throw_if(enum tarn_status status, const struct tarn_error *error)
{
    if (status) {
        tn_torch_throw(error);
    }
}

static struct tarn_allocator *allocator_of(int device)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    throw_if(tn_torch_allocator(device, &allocator, &error), &error);
    return allocator;
}

static void cache_info(void *self, int8_t device, size_t *largest_in_out)
{
    struct tarn_error error;
    uint64_t largest = *largest_in_out;

    (void)self;
    throw_if(tarn_allocator_cache_info(allocator_of(device), &largest, &error), &error);
    *largest_in_out = (size_t)largest;
}

static double get_memory_fraction(void *self, int8_t device)
{
    (void)self;
    return tarn_torch_get_memory_fraction(device);
}

static void reset_peak_stats(void *self, int8_t device)
{
    (void)self;
    tarn_allocator_reset_peak_stats(allocator_of(device));
}

static void reset_accumulated_stats(void *self, int8_t device)
{
    (void)self;
    tarn_allocator_reset_accumulated_stats(allocator_of(device));
}

/* The pool {0, 0} is the whole cache. Torch calls this in destructors of other pools. */
static void empty_cache(void *self, struct tarn_pool_id id)
{
    struct tarn_error error;

    (void)self;
    for (int i = 0; i < TARN_TORCH_DEVICES_MAX; i++) {
        struct tarn_allocator *const allocator = tarn_torch_find_allocator(i);
        const enum tarn_status st =
            allocator ? tarn_allocator_empty_pool(allocator, id, &error) : TARN_OK;

        if (st && st != TARN_ERR_NOT_FOUND && (id.first != 0 || id.second != 0)) {
            tn_torch_note(&error);
        } else if (st && st != TARN_ERR_NOT_FOUND) {
            tn_torch_throw(&error);
        }
    }
}

static int get_pool_use_count(void *self, int8_t device, struct tarn_pool_id id)
{
    (void)self;
    return (int)tarn_allocator_pool_use_count(allocator_of(device), id);
}

/* `source` is a pool's own allocator: a pointer to it, or to a shared pointer to it in later
 * versions. Either is followed by one word that is 0 when there is none: an object begins with the
 * address of its table. */
static void create_or_incref_pool(void *self, int8_t device, struct tarn_pool_id id,
                                  void *const *source)
{
    struct tarn_error error;

    (void)self;
    if (source && *source) {
        throw_if(tn_torch_fail(&error, TARN_ERR_NOT_SUPPORTED,
                               "a torch.cuda.MemPool with its own allocator cannot be created "
                               "while tarn is torch's allocator: create it without one"),
                 &error);
    }
    throw_if(tarn_allocator_acquire_pool(allocator_of(device), id, &error), &error);
}

/* Also called in destructors, so it does not throw. */
static void set_use_on_oom(void *self, int8_t device, struct tarn_pool_id id, bool use_on_oom)
{
    struct tarn_allocator *const allocator = tarn_torch_find_allocator(device);

    (void)self;
    if (allocator) {
        (void)!tarn_allocator_set_pool_use_on_oom(allocator, id, use_on_oom);
    }
}

static void set_no_split(void *self, int8_t device, struct tarn_pool_id id)
{
    struct tarn_error error;
    const enum tarn_status st = tarn_allocator_set_pool_no_split(allocator_of(device), id, true);

    (void)self;
    throw_if(st ? tn_torch_fail(&error, st, "there is no such pool to switch splitting off in")
                : st,
             &error);
}

typedef void (*enable_peer_method)(void *self, int8_t device, int8_t peer);
typedef int (*memcpy_method)(void *self, void *destination, int destination_device,
                             const void *source, int source_device, size_t count, void *stream,
                             bool peer_access);
typedef int (*memcpy_peer)(void *destination, int destination_device, const void *source,
                           int source_device, size_t count, void *stream);

static enable_peer_method torch_enable_peer;
static memcpy_method torch_memcpy;
static memcpy_peer cuda_memcpy_peer;

/* Torch requests access to plain memory from the driver; expandable segments are granted
 * individually. */
static void enable_peer_access(void *self, int8_t device, int8_t peer)
{
    struct tarn_error error;

    torch_enable_peer(self, device, peer);
    throw_if(tarn_allocator_add_peer(allocator_of(peer), device, &error), &error);
}

static int memcpy_async(void *self, void *destination, int destination_device, const void *source,
                        int source_device, size_t count, void *stream, bool peer_access)
{
    struct tarn_allocator *const to = tarn_torch_find_allocator(destination_device);
    struct tarn_allocator *const from = tarn_torch_find_allocator(source_device);

    if (destination_device != source_device && to && from && cuda_memcpy_peer &&
        tarn_allocator_choose_copy(to, from, peer_access) == TARN_COPY_PEER) {
        return cuda_memcpy_peer(destination, destination_device, source, source_device, count,
                                stream);
    }
    return torch_memcpy(self, destination, destination_device, source, source_device, count, stream,
                        peer_access);
}

typedef void (*any_function)(void);

/* A method: its name, its mangled name (NULL: known by its place), ours, and where torch's is kept
 * if ours calls it. */
static struct method {
    const char *name;
    const char *symbol;
    any_function ours;
    void *torchs;
    bool taken;
} methods[] = {
    {"cacheInfo", "_ZN" CLASS "9cacheInfoEaPm", (any_function)cache_info, NULL, false},
    {"getMemoryFraction", "_ZN" CLASS "17getMemoryFractionEa", (any_function)get_memory_fraction,
     NULL, false},
    {"resetPeakStats", "_ZN" CLASS "14resetPeakStatsEa", (any_function)reset_peak_stats, NULL,
     false},
    {"resetAccumulatedStats", "_ZN" CLASS "21resetAccumulatedStatsEa",
     (any_function)reset_accumulated_stats, NULL, false},
    {"emptyCache", "_ZN" CLASS "10emptyCacheESt4pairIyyE", (any_function)empty_cache, NULL, false},
    {"enablePeerAccess", "_ZN" CLASS "16enablePeerAccessEaa", (any_function)enable_peer_access,
     &torch_enable_peer, false},
    {"memcpyAsync", "_ZN" CLASS "11memcpyAsyncEPviPKvimP11CUstream_stb", (any_function)memcpy_async,
     &torch_memcpy, false},
    {"shareIpcHandle", "_ZN" CLASS "14shareIpcHandleEPv", (any_function)tn_torch_share, NULL,
     false},
    {"getIpcDevPtr", "_ZN" CLASS "12getIpcDevPtrE" STRING, (any_function)TN_TORCH_OPEN_SHARED, NULL,
     false},
    {"isHistoryEnabled", NULL, (any_function)tn_torch_is_history_enabled, NULL, false},
    {"recordHistory", NULL, (any_function)tn_torch_ignore_record_history, NULL, false},
    {"recordAnnotation", NULL, (any_function)tn_torch_record_annotation, NULL, false},
    {"pushCompileContext", NULL, (any_function)tn_torch_push_compile_context, NULL, false},
    {"popCompileContext", NULL, (any_function)tn_torch_pop_compile_context, NULL, false},
    {"setUserMetadata", NULL, (any_function)tn_torch_set_user_metadata, NULL, false},
    {"getPoolUseCount", NULL, (any_function)get_pool_use_count, NULL, false},
    {"createOrIncrefPool", NULL, (any_function)create_or_incref_pool, NULL, false},
    {"setUseOnOOM", NULL, (any_function)set_use_on_oom, NULL, false},
    {"setNoSplit", NULL, (any_function)set_no_split, NULL, false},
};

enum {
    METHODS = sizeof methods / sizeof methods[0],
    INLINE_METHODS = 5, /* those known by their place, and checkPoolLiveAllocations */
    INLINE_TAKEN = 4,
    HISTORY_TAKEN = 6, /* from behind getIpcDevPtr on; getUserMetadata follows, then observers */
    HISTORY_SLOTS = HISTORY_TAKEN + 1,
    OBSERVERS_MIN = 2,
    OBSERVERS_MAX = 3,
    NAMED_METHODS = METHODS - INLINE_TAKEN - HISTORY_TAKEN
};

static pthread_mutex_t *const lock =
    &tn_torch_locks[TN_TORCH_LOCK_METHODS]; /* guards all below, and methods.taken */
static void *table[TABLE_MAX];
static size_t words;

/* The slot with that function; 0, which is none, where it is not in the table. */
static size_t slot_of(const char *symbol)
{
    void *const address = tn_torch_symbol(symbol);
    size_t found = 0;

    for (size_t i = TABLE_HEAD; address && !found && i < words; i++) {
        found = table[i] == address ? i : 0;
    }
    return found;
}

static void method_take(struct method *method, size_t slot)
{
    if (method->torchs) {
        memcpy(method->torchs, &table[slot], sizeof(void *));
    }
    memcpy(&table[slot], &method->ours, sizeof(void *));
    method->taken = true;
}

static void take_history(void)
{
    const size_t open = slot_of("_ZN" CLASS "12getIpcDevPtrE" STRING);
    const size_t peer = slot_of("_ZN" CLASS "16enablePeerAccessEaa");
    const size_t observers = peer - open - 1 - HISTORY_SLOTS;

    if (open && peer > open + HISTORY_SLOTS + OBSERVERS_MIN && observers <= OBSERVERS_MAX &&
        tn_torch_is_named(table[open + 2], "_ZN" CLASS "13recordHistoryE")) {
        for (size_t i = 0; i < HISTORY_TAKEN; i++) {
            method_take(&methods[NAMED_METHODS + i], open + 1 + i);
        }
    }
}

/* Those known by their place first: the slots beside them must be untouched. */
static void take_all(void)
{
    const size_t release = slot_of("_ZN" CLASS "11releasePoolEaSt4pairIyyE");
    const size_t share = slot_of("_ZN" CLASS "14shareIpcHandleEPv");

    if (release && share == release + INLINE_METHODS + 1) {
        for (size_t i = 0; i < INLINE_TAKEN; i++) {
            method_take(&methods[METHODS - INLINE_TAKEN + i], release + 1 + i);
        }
    }
    take_history();
    for (size_t i = 0; i < NAMED_METHODS; i++) {
        const size_t slot = methods[i].ours ? slot_of(methods[i].symbol) : 0;

        if (slot) {
            method_take(&methods[i], slot);
        }
    }
    (void)tn_torch_function("cudaMemcpyPeerAsync", &cuda_memcpy_peer);
}

/* Torch's current allocator if it has the vtable of pluggable allocators, else NULL. */
static void ***find_object(const char *torchs_table)
{
    char *const current = tn_torch_symbol("_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    const char *functions = NULL;
    void *object = NULL;

    if (current && torchs_table) {
        memcpy(&object, current, sizeof object); /* a std::atomic pointer is a pointer */
    }
    if (object) {
        memcpy(&functions, object, sizeof functions);
    }
    return functions && functions == torchs_table + TABLE_HEAD * sizeof(void *) ? object : NULL;
}

enum tarn_status tarn_torch_take_methods(struct tarn_error *error)
{
    const char *const torchs = tn_torch_symbol("_ZTVN" CLASS "E");
    const size_t size = torchs ? tn_torch_object_size(torchs) : 0;
    enum tarn_status st = TARN_OK;

    (void)pthread_mutex_lock(lock);
    void ***const object = find_object(torchs);

    if (tarn_torch_missing_symbol()) { /* ours could neither throw nor create a std::string */
        st = tn_torch_fail(error, TARN_ERR_NOT_SUPPORTED,
                           "torch's exceptions cannot be thrown from here: its unsupported methods "
                           "stay unsupported");
    } else if (!object || size <= TABLE_HEAD * sizeof(void *) || size > sizeof table) {
        st = tn_torch_fail(error, TARN_ERR_NOT_SUPPORTED,
                           "torch's current allocator is not a pluggable one with a known layout: "
                           "its unsupported methods stay unsupported");
    } else {
        words = size / sizeof(void *);
        memcpy(table, torchs, size);
        take_all();
        *object = &table[TABLE_HEAD];
    }
    (void)pthread_mutex_unlock(lock);
    return st;
}

bool tarn_torch_has_method(const char *name)
{
    bool has = false;

    (void)pthread_mutex_lock(lock);
    for (size_t i = 0; i < METHODS; i++) {
        has |= strcmp(methods[i].name, name) == 0 && methods[i].taken;
    }
    (void)pthread_mutex_unlock(lock);
    return has;
}
