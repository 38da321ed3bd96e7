/* SPDX-License-Identifier: MIT */
#include "alloc/fast/lane.h"

#include "base/host_mem.h"

enum {
    PATIENCE_FIRST = 32, /* waits for the engine's lock before lanes open */
    PATIENCE_MAX = 1 << 20,
    CALLS_THAT_OPEN = 512,  /* then, each the lane of its stream */
    SLOW_CALLS_LOOK = 1024, /* calls that take all lanes, between two looks whether they pay */
    ASKING_ROUNDS = 3,      /* of all lanes, before the engine is asked */
    STEPS_THAT_PAY = 8      /* for each call that takes all lanes */
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

/* ---- room ---- */

static unsigned pool_stat(unsigned pool)
{
    return TARN_STAT_SMALL_POOL + pool;
}

/* Adds what a step does to the counters, or takes it away again. */
static void amounts_add(struct tn_lane_amounts *amounts, const struct tn_trail_step *step,
                        int64_t sign)
{
    const int64_t change[TN_LANE_COUNTERS] = {1, (int64_t)step->block->size,
                                              (int64_t)step->requested, step->split_blocks,
                                              step->split_bytes};

    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        amounts->of[c][TARN_STAT_ALL] += sign * change[c];
        amounts->of[c][pool_stat(step->pool)] += sign * change[c];
    }
}

/* Keeps the larger of both. */
static void amounts_raise(struct tn_lane_amounts *most, const struct tn_lane_amounts *amounts)
{
    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            if (amounts->of[c][stat] > most->of[c][stat]) {
                most->of[c][stat] = amounts->of[c][stat];
            }
        }
    }
}

/* Whether what was lent is enough for that. */
static bool lane_affords(const struct tn_lane *lane, const struct tn_lane_amounts *used)
{
    bool affords = true;

    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            affords = affords && used->of[c][stat] <= lane->lent.of[c][stat];
        }
    }
    return affords;
}

/* What the lane has added since the counters were put together, if its mark stood there. */
static struct tn_lane_amounts lane_used(const struct tn_lane *lane, uint32_t mark)
{
    const struct tn_trail *trail = &lane->trail;
    struct tn_lane_amounts used = {{{0}}};

    for (uint32_t i = trail->counted; i < mark; i++) {
        amounts_add(&used, &trail->steps[i], 1);
    }
    for (uint32_t i = trail->counted; i > mark; i--) {
        amounts_add(&used, &trail->steps[i - 1], -1);
    }
    return used;
}

/* Lets the trail go from its mark as far as what was lent allows. */
static void lane_set_limits(struct tn_lane *lane)
{
    struct tn_trail *trail = &lane->trail;
    const struct tn_lane_amounts here = lane_used(lane, trail->mark);
    struct tn_lane_amounts used = here;

    tn_assert(lane_affords(lane, &here));
    trail->ceiling = trail->mark;
    while (trail->ceiling < trail->end) {
        amounts_add(&used, &trail->steps[trail->ceiling], 1);
        if (!lane_affords(lane, &used)) {
            break;
        }
        trail->ceiling++;
    }
    used = here;
    trail->floor = trail->mark;
    while (trail->floor > 0) {
        amounts_add(&used, &trail->steps[trail->floor - 1], -1);
        if (!lane_affords(lane, &used)) {
            break;
        }
        trail->floor--;
    }
}

/* Takes what is lacking, or half of what the other lane does not use if that is more. Both are
 * held. */
static void lane_take_room(struct tn_lane *lane, struct tn_lane *other,
                           const struct tn_lane_amounts *wanted)
{
    const struct tn_lane_amounts others = lane_used(other, other->trail.mark);

    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            const int64_t lacking = wanted->of[c][stat] - lane->lent.of[c][stat];
            const int64_t idle = other->lent.of[c][stat] - others.of[c][stat];

            if (lacking > 0) {
                const int64_t half = idle / 2 > lacking ? idle / 2 : lacking;
                const int64_t taken = half < idle ? half : idle;

                lane->lent.of[c][stat] += taken;
                other->lent.of[c][stat] -= taken;
            }
        }
    }
    lane_set_limits(other);
}

/* Asks one other lane, unless somebody uses it just now. */
static bool lane_ask(struct tn_lane *lane, struct tn_lane *other,
                     const struct tn_lane_amounts *wanted)
{
    if (!tn_biased_lock_try(&other->lock)) {
        return false;
    }
    if (other->open) {
        lane_take_room(lane, other, wanted);
    }
    tn_biased_lock_leave(&other->lock);
    return lane_affords(lane, wanted);
}

/* Asks the other lanes, one after the other, until the mark may stand there; false when they have
 * too little. */
static TN_NOINLINE bool lane_find_room(struct tn_lanes *lanes, struct tn_lane *lane, uint32_t mark)
{
    const uint32_t count = atomic_load_explicit(&lanes->count, memory_order_acquire);
    const struct tn_lane_amounts wanted = lane_used(lane, mark);
    bool found = lane_affords(lane, &wanted);

    for (uint32_t round = 0; round < ASKING_ROUNDS && !found; round++) {
        for (uint32_t i = 1; i < count && !found; i++) {
            found = lane_ask(lane, lanes->lane[(lane->number + i) % count], &wanted);
        }
    }
    lane_set_limits(lane);
    return found;
}

/* ---- without the engine's lock ---- */

static const struct tn_trail_step *lane_forward(struct tn_lanes *lanes, struct tn_lane *lane,
                                                uint64_t requested)
{
    struct tn_trail *trail = &lane->trail;
    const struct tn_trail_step *step = tn_trail_forward(trail, requested, lane->stream);

    if (tn_likely(step) || trail->mark < trail->ceiling || trail->mark == trail->end ||
        !lane_find_room(lanes, lane, trail->mark + 1)) {
        return step;
    }
    return tn_trail_forward(trail, requested, lane->stream);
}

bool tn_lane_alloc(struct tn_lanes *lanes, uint64_t requested, tarn_stream stream,
                   struct tarn_handle *handle_out)
{
    struct tn_lane *lane = hint.lane;
    const struct tn_trail_step *step = NULL;

    if (hint.id != lanes->id || lane->stream != stream) {
        return false;
    }
    tn_biased_lock_acquire(&lane->lock);
    if (tn_likely(lane->open)) {
        step = lane_forward(lanes, lane, requested);
    }
    if (tn_likely(step)) {
        *handle_out = (struct tarn_handle){.ptr = step->address, .place = step->place};
    }
    tn_biased_lock_release(&lane->lock);
    return step != NULL;
}

/* Going back can need room as well: free parts of segments grow. */
static bool lane_back(struct tn_lanes *lanes, struct tn_lane *lane, tarn_ptr ptr)
{
    struct tn_trail *trail = &lane->trail;

    if (tn_likely(tn_trail_back(trail, ptr) != NULL)) {
        return true;
    }
    return trail->mark > 0 && trail->mark == trail->floor &&
           lane_find_room(lanes, lane, trail->mark - 1) && tn_trail_back(trail, ptr) != NULL;
}

bool tn_lane_free(struct tn_lanes *lanes, tarn_ptr ptr)
{
    struct tn_lane *lane = hint.lane;

    if (hint.id != lanes->id) {
        return false;
    }
    tn_biased_lock_acquire(&lane->lock);
    const bool freed = lane->open && lane_back(lanes, lane, ptr);

    tn_biased_lock_release(&lane->lock);
    return freed;
}

/* ---- with the engine's lock ---- */

/* The engine's counters in the order of a lane's. */
static void list_counters(struct tn_counters *counters, struct tn_counter *list[TN_LANE_COUNTERS])
{
    list[0] = &counters->blocks.out;
    list[1] = &counters->bytes.out;
    list[2] = &counters->requested;
    list[3] = &counters->split;
    list[4] = &counters->split_bytes;
}

/* Moves room from the peaks to a lane. */
static void lane_lend(struct tn_lane *lane, struct tn_counter *list[TN_LANE_COUNTERS],
                      const struct tn_lane_amounts *share)
{
    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            list[c]->peak[stat] -= share->of[c][stat];
        }
    }
    lane->lent = *share;
    lane_set_limits(lane);
}

/* ... and back, and counts what the lane did. */
static uint64_t lane_settle_accounts(struct tn_lane *lane, struct tn_counters *counters)
{
    struct tn_counter *list[TN_LANE_COUNTERS];

    list_counters(counters, list);
    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            list[c]->peak[stat] += lane->lent.of[c][stat];
        }
    }
    lane->lent = (struct tn_lane_amounts){{{0}}};
    return tn_trail_count_below_peaks(&lane->trail, counters);
}

/* What the lane wants to go on to the end of its trail and back, and no more than is left. */
static struct tn_lane_amounts lane_take_share(const struct tn_lane *lane,
                                              struct tn_lane_amounts *room)
{
    const struct tn_trail *trail = &lane->trail;
    struct tn_lane_amounts used = {{{0}}};
    struct tn_lane_amounts share = {{{0}}};

    for (uint32_t i = trail->mark; i < trail->end; i++) {
        amounts_add(&used, &trail->steps[i], 1);
        amounts_raise(&share, &used);
    }
    used = (struct tn_lane_amounts){{{0}}};
    for (uint32_t i = trail->mark; i > 0; i--) {
        amounts_add(&used, &trail->steps[i - 1], -1);
        amounts_raise(&share, &used);
    }
    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            const int64_t left = room->of[c][stat];

            share.of[c][stat] = share.of[c][stat] < left ? share.of[c][stat] : left;
            room->of[c][stat] -= share.of[c][stat];
        }
    }
    return share;
}

/* What the peaks leave. */
static struct tn_lane_amounts counters_room(struct tn_counter *list[TN_LANE_COUNTERS])
{
    struct tn_lane_amounts room;

    for (int c = 0; c < TN_LANE_COUNTERS; c++) {
        const struct tn_counter *counter = list[c];

        room.of[c][TARN_STAT_ALL] = counter->peak[TARN_STAT_ALL] - tn_counter_all(counter);
        for (unsigned pool = 0; pool < TN_POOLS; pool++) {
            room.of[c][pool_stat(pool)] = counter->peak[pool_stat(pool)] - counter->current[pool];
        }
    }
    return room;
}

void tn_lanes_gather(struct tn_lanes *lanes, struct tn_counters *counters)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tn_lane *lane = lanes->lane[i];

        if (lane->open) { /* changes under the engine's lock only */
            tn_biased_lock_acquire_another(&lane->lock);
            lanes->steps += lane_settle_accounts(lane, counters);
        }
    }
    lanes->slow_calls++;
}

void tn_lanes_spread(struct tn_lanes *lanes, struct tn_counters *counters)
{
    struct tn_counter *list[TN_LANE_COUNTERS];

    list_counters(counters, list);
    struct tn_lane_amounts room = counters_room(list);
    const uint32_t first = lanes->first++; /* not always the same lanes shall have enough */

    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tn_lane *lane = lanes->lane[(first + i) % lanes->count];

        if (lane->open) {
            const struct tn_lane_amounts share = lane_take_share(lane, &room);

            lane_lend(lane, list, &share);
            tn_biased_lock_leave(&lane->lock);
        }
    }
}

struct tn_lane *tn_lanes_find(const struct tn_lanes *lanes, tarn_stream stream)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct tn_lane *lane = lanes->lane[i];

        if (lane->open && lane->stream == stream) {
            return lane;
        }
    }
    return NULL;
}

void tn_lanes_remember(const struct tn_lanes *lanes, tarn_stream stream)
{
    struct tn_lane *lane = tn_lanes_find(lanes, stream);

    if (lane) {
        hint = (struct lane_hint){.id = lanes->id, .lane = lane};
    }
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

bool tn_lanes_consider_slow(struct tn_lanes *lanes, uint32_t waits, tarn_stream stream)
{
    bool opened = false;

    if (lanes->calls_left > 0) {
        lanes->calls_left--;
        opened = lanes_open(lanes, stream);
    }
    if (waits != lanes->waits_seen) {
        lanes->changes += stream != lanes->last_stream;
        lanes->last_stream = stream;
        lanes_look(lanes, waits);
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
