/* SPDX-License-Identifier: MIT */
#include "alloc/lane.h"

#include "alloc/size_class.h"
#include "base/host_mem.h"

enum {
    PATIENCE_FIRST = 32,
    PATIENCE_MAX = 1 << 20,
    CALLS_THAT_OPEN = 512,
    SLOW_CALLS_LOOK = 1024,
    STEPS_THAT_PAY = 8 /* for each call that takes all lanes */
};

/* The lane that a thread used last, of the engine with that id. */
struct lane_hint {
    uint64_t id;
    struct tn_lane *lane;
};

static _Thread_local struct lane_hint hint __attribute__((tls_model("initial-exec")));

void tn_lanes_init(struct tn_lanes *lanes)
{
    static _Atomic uint64_t ids;

    *lanes = (struct tn_lanes){
        .id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1,
        .patience = PATIENCE_FIRST,
    };
}

void tn_lanes_fini(struct tn_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        tn_biased_lock_fini(&lanes->lane[i]->lock);
        tn_host_free(lanes->lane[i], sizeof *lanes->lane[i]);
    }
}

/* ---- counting in a lane ---- */

/* What a step forward adds to the lane's counters; a step back adds the negative. */
struct step_amounts {
    int64_t of[TN_LANE_COUNTERS];
};

static struct step_amounts step_amounts(const struct tn_trail_step *step, uint64_t requested,
                                        int64_t sign)
{
    return (struct step_amounts){{sign, sign * (int64_t)step->block->size,
                                  sign * (int64_t)requested, sign * step->split_blocks,
                                  sign * step->split_bytes}};
}

static unsigned pool_stat(unsigned pool)
{
    return TARN_STAT_SMALL_POOL + pool;
}

static bool lane_has_room(const struct tn_lane *lane, unsigned pool,
                          const struct step_amounts *amounts)
{
    bool has = true;

    for (int i = 0; i < TN_LANE_COUNTERS; i++) {
        const struct tn_lane_counter *counter = &lane->counter[i];
        const int64_t amount = amounts->of[i];

        has = has && (amount <= 0 || (counter->room[TARN_STAT_ALL] >= amount &&
                                      counter->room[pool_stat(pool)] >= amount));
    }
    return has;
}

static void lane_count(struct tn_lane *lane, unsigned pool, const struct step_amounts *amounts)
{
    for (int i = 0; i < TN_LANE_COUNTERS; i++) {
        struct tn_lane_counter *counter = &lane->counter[i];
        const int64_t amount = amounts->of[i];

        counter->room[TARN_STAT_ALL] -= amount;
        counter->room[pool_stat(pool)] -= amount;
        counter->allocated[pool] += amount > 0 ? amount : 0;
    }
}

/* Moves room between two lanes that are held: what is lacking, or half of what the other has. */
static void lane_take_room(struct tn_lane *lane, struct tn_lane *other, int counter, unsigned stat,
                           int64_t amount)
{
    int64_t *room = &lane->counter[counter].room[stat];
    int64_t *others = &other->counter[counter].room[stat];
    const int64_t lacking = amount - *room;

    if (lacking <= 0) {
        return;
    }
    const int64_t half = *others / 2;
    const int64_t wanted = half > lacking ? half : lacking;
    const int64_t taken = wanted < *others ? wanted : *others;

    *room += taken;
    lane->counter[counter].lent[stat] += taken;
    *others -= taken;
    other->counter[counter].lent[stat] -= taken;
}

/* Asks the other lanes, one after the other, until there is room; false when they have too little.
 */
static TN_NOINLINE bool lane_find_room(struct tn_lanes *lanes, struct tn_lane *lane, unsigned pool,
                                       const struct step_amounts *amounts)
{
    const uint32_t count = atomic_load_explicit(&lanes->count, memory_order_acquire);
    bool found = false;

    for (uint32_t i = 1; i < count && !found; i++) {
        struct tn_lane *other = lanes->lane[(lane->number + i) % count];

        if (!tn_biased_lock_try(&other->lock)) {
            continue;
        }
        for (int c = 0; c < TN_LANE_COUNTERS && other->open; c++) {
            lane_take_room(lane, other, c, TARN_STAT_ALL, amounts->of[c]);
            lane_take_room(lane, other, c, pool_stat(pool), amounts->of[c]);
        }
        tn_biased_lock_leave(&other->lock);
        found = lane_has_room(lane, pool, amounts);
    }
    return found;
}

/* Whether the step can be made without a new peak; then it is counted. */
static bool lane_admit(struct tn_lanes *lanes, struct tn_lane *lane,
                       const struct tn_trail_step *step, uint64_t requested, int64_t sign)
{
    const struct step_amounts amounts = step_amounts(step, requested, sign);

    if (tn_unlikely(!lane_has_room(lane, step->pool, &amounts)) &&
        !lane_find_room(lanes, lane, step->pool, &amounts)) {
        return false;
    }
    lane_count(lane, step->pool, &amounts);
    lane->steps++;
    return true;
}

/* ---- without the engine's lock ---- */

const struct tn_block *tn_lane_alloc(struct tn_lanes *lanes, uint64_t requested, tarn_stream stream,
                                     const struct tarn_config *config)
{
    struct tn_lane *lane = hint.lane;
    const struct tn_block *block = NULL;

    if (hint.id != lanes->id || lane->stream != stream) {
        return NULL;
    }
    tn_biased_lock_acquire(&lane->lock);
    if (tn_likely(lane->open)) {
        struct tn_trail_step *step = tn_trail_next(&lane->trail, requested, stream, config);

        if (tn_likely(step && lane_admit(lanes, lane, step, requested, 1))) {
            block = tn_trail_forward(&lane->trail, step, requested, 0);
        }
    }
    tn_biased_lock_release(&lane->lock);
    return block;
}

bool tn_lane_free(struct tn_lanes *lanes, tarn_ptr ptr)
{
    struct tn_lane *lane = hint.lane;
    bool freed = false;

    if (hint.id != lanes->id) {
        return false;
    }
    tn_biased_lock_acquire(&lane->lock);
    if (tn_likely(lane->open)) {
        const struct tn_trail_step *step = tn_trail_last(&lane->trail, ptr);

        if (tn_likely(step && lane_admit(lanes, lane, step, step->block->requested_size, -1))) {
            tn_trail_back(&lane->trail);
            freed = true;
        }
    }
    tn_biased_lock_release(&lane->lock);
    return freed;
}

/* ---- lending ---- */

/* The engine's counters in the order of a lane's. */
static void list_counters(struct tn_counters *counters, struct tn_counter *list[TN_LANE_COUNTERS])
{
    list[0] = &counters->blocks.out;
    list[1] = &counters->bytes.out;
    list[2] = &counters->requested;
    list[3] = &counters->split;
    list[4] = &counters->split_bytes;
}

/* Takes back what was lent and adds what was done in the lane. */
static void counter_gather(struct tn_counter *counter, struct tn_lane_counter *of_lane)
{
    for (unsigned pool = 0; pool < TN_POOLS; pool++) {
        counter->current[pool] +=
            of_lane->lent[pool_stat(pool)] - of_lane->room[pool_stat(pool)];
        counter->allocated[pool] += of_lane->allocated[pool];
    }
    for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
        counter->peak[stat] += of_lane->lent[stat];
    }
    *of_lane = (struct tn_lane_counter){0};
}

/* Lends a share of the room. */
static void counter_lend(struct tn_counter *counter, struct tn_lane_counter *of_lane,
                         const int64_t share[TARN_STAT_POOLS])
{
    for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
        counter->peak[stat] -= share[stat];
        of_lane->room[stat] = share[stat];
        of_lane->lent[stat] = share[stat];
    }
}

static void counter_share(const struct tn_counter *counter, int64_t lanes,
                          int64_t share[TARN_STAT_POOLS])
{
    const int64_t current[TARN_STAT_POOLS] = {
        [TARN_STAT_ALL] = tn_counter_all(counter),
        [TARN_STAT_SMALL_POOL] = counter->current[TN_SMALL],
        [TARN_STAT_LARGE_POOL] = counter->current[TN_LARGE],
    };

    for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
        share[stat] = (counter->peak[stat] - current[stat]) / lanes;
    }
}

/* ---- with the engine's lock ---- */

void tn_lanes_gather(struct tn_lanes *lanes, struct tn_counters *counters)
{
    struct tn_counter *list[TN_LANE_COUNTERS];

    list_counters(counters, list);
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tn_lane *lane = lanes->lane[i];

        if (!lane->open) { /* changes under the engine's lock only */
            continue;
        }
        tn_biased_lock_acquire_another(&lane->lock);
        for (int c = 0; c < TN_LANE_COUNTERS; c++) {
            counter_gather(list[c], &lane->counter[c]);
        }
        lanes->steps += lane->steps;
        lane->steps = 0;
    }
    lanes->slow_calls++;
}

void tn_lanes_spread(struct tn_lanes *lanes, struct tn_counters *counters)
{
    struct tn_counter *list[TN_LANE_COUNTERS];
    int64_t share[TN_LANE_COUNTERS][TARN_STAT_POOLS];
    int64_t open = 0;

    list_counters(counters, list);
    for (uint32_t i = 0; i < lanes->count; i++) {
        open += lanes->lane[i]->open;
    }
    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        counter_share(list[c], open, share[c]);
    }
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tn_lane *lane = lanes->lane[i];

        if (!lane->open) {
            continue;
        }
        for (int c = 0; c < TN_LANE_COUNTERS; c++) {
            counter_lend(list[c], &lane->counter[c], share[c]);
        }
        tn_biased_lock_leave(&lane->lock);
    }
}

struct tn_lane *tn_lanes_find(struct tn_lanes *lanes, tarn_stream stream)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tn_lane *lane = lanes->lane[i];

        if (lane->open && lane->stream == stream) {
            hint = (struct lane_hint){.id = lanes->id, .lane = lane};
            return lane;
        }
    }
    return NULL;
}

void tn_lanes_close(struct tn_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tn_lane *lane = lanes->lane[i];

        if (lane->open) {
            tn_assert(lane->trail.end == 0);
            lane->open = false;
            tn_biased_lock_leave(&lane->lock);
        }
    }
    atomic_store_explicit(&lanes->open, false, memory_order_relaxed);
}

/* A closed lane of the stream, made if need be; NULL when there is none and there can be none. */
static struct tn_lane *lanes_get(struct tn_lanes *lanes, tarn_stream stream)
{
    const uint32_t count = lanes->count;

    for (uint32_t i = 0; i < count; i++) {
        if (lanes->lane[i]->stream == stream) {
            return lanes->lane[i];
        }
    }
    struct tn_lane *lane = count < TN_LANES_MAX ? tn_host_alloc_zero(sizeof *lane) : NULL;

    if (lane) {
        tn_biased_lock_init(&lane->lock, TN_LOCK_LANE);
        lane->stream = stream;
        lane->number = count;
        lanes->lane[count] = lane;
        atomic_store_explicit(&lanes->count, count + 1, memory_order_release);
    }
    return lane;
}

/* Opens the stream's lane, gathered as the others are; false when it is open or there is none. */
static bool lanes_open(struct tn_lanes *lanes, tarn_stream stream)
{
    struct tn_lane *lane = tn_lanes_find(lanes, stream) ? NULL : lanes_get(lanes, stream);

    if (lane) {
        tn_biased_lock_acquire_another(&lane->lock);
        lane->open = true;
        atomic_store_explicit(&lanes->open, true, memory_order_relaxed);
    }
    return lane != NULL;
}

static TN_NOINLINE void lanes_look(struct tn_lanes *lanes, uint32_t waits)
{
    if (waits - lanes->waits_seen < lanes->patience) {
        return;
    }
    if (lanes->changes >= lanes->patience / 4) {
        lanes->calls_left = CALLS_THAT_OPEN;
    }
    lanes->waits_seen = waits;
    lanes->changes = 0;
}

bool tn_lanes_consider(struct tn_lanes *lanes, const struct tn_biased_lock *lock,
                       tarn_stream stream)
{
    bool opened = false;

    if (tn_unlikely(lanes->calls_left > 0)) {
        lanes->calls_left--;
        opened = lanes_open(lanes, stream);
    }
    if (tn_unlikely(lock->waits != lanes->waits_seen)) {
        lanes->changes += stream != lanes->last_stream;
        lanes->last_stream = stream;
        lanes_look(lanes, lock->waits);
    }
    return opened;
}

bool tn_lanes_pay(struct tn_lanes *lanes)
{
    if (tn_likely(lanes->slow_calls < SLOW_CALLS_LOOK)) {
        return true;
    }
    const bool pay = lanes->steps >= lanes->slow_calls * STEPS_THAT_PAY;

    lanes->slow_calls = 0;
    lanes->steps = 0;
    if (!pay && lanes->patience < PATIENCE_MAX) {
        lanes->patience *= 2;
    }
    return pay;
}
