/* SPDX-License-Identifier: MIT */
/*
 * The per-stream caches and their quotas (src/alloc/fast/stream_cache.h). README.md says what is
 * left out and what is shown.
 *
 * Each stream has one segment of SLOTS equal blocks, so that its counters follow from the set of
 * its allocated slots: how many there are (BLOCKS), and how many free parts the segment is split
 * into (PARTS), which both calls can raise. What the locks guard changes in one step; between
 * taking a lock, looking whether a quota suffices, asking another cache, changing the counters and
 * releasing the lock anything may happen.
 *
 * What is printed in a simulation with -DTRACE is what replay.c does with the program. Of the runs
 * of the model its are those in which a call that a cache serves is not interrupted, the other
 * caches are busy for all of such a call or for none of it, and the device is never asked.
 */
#ifndef CACHES
#define CACHES 2
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define ENTRIES 2 /* of a log */

/* The counters. One that does not count stays 0. */
#define BLOCKS 0
#define PARTS 1
#ifndef COUNTS_BLOCKS
#define COUNTS_BLOCKS 1
#endif
#ifndef COUNTS_PARTS
#define COUNTS_PARTS 1
#endif

#define SELF (me + 1)

#define IDLE 0    /* what a thread does next */
#define ENTER 1   /* takes a cache's lock, serves what needs no more */
#define ASK 2     /* asks one other cache for quota, then continues with `next` */
#define REDO 3
#define UNDO 4
#define APPLY 5   /* has looked at the quota, changes the counters */
#define HEAP 6    /* takes the heap's lock */
#define COLLECT 7 /* takes the next cache */
#define WORK 8
#define OPENING 9
#define SHARE 10 /* releases the next cache */

typedef Cache {
    byte lock; /* thread + 1; 0: free */
    bool open;
    short quota[2];
    short used[2]; /* counters of the shard */

    /* the undo log */
    byte end;
    byte cursor;
    byte counted;
    byte floor;
    byte ceiling;
    byte slot[ENTRIES];
    short parts[ENTRIES]; /* what the entry does to PARTS */

    byte out;  /* allocated slots: the truth, in whichever counter it is */
    byte held; /* of these, those that a caller has */
#ifdef TRACE
    byte mapped; /* slots whose blocks are in the cache's map */
#endif
};

Cache cache[CACHES]; /* cache i is that of stream i */
byte created;        /* caches that exist, the first ones */
byte heap_lock;      /* thread + 1; 0: free */
short current[2];    /* of the heap */
short peak[2];

short top[2]; /* ghost: largest true sum since the peaks were reset */

/* ---- counters ---- */

#if SLOTS == 2
#define FULL 3
#define COUNT(o) (COUNTS_BLOCKS * (((o) & 1) + (((o) >> 1) & 1)))
#define SPLIT(o) (COUNTS_PARTS * ((o) == 1 || (o) == 2))
#define FIRST_FREE(o) ((o) & 1)
#else
#define FULL 7
#define COUNT(o) (COUNTS_BLOCKS * (((o) & 1) + (((o) >> 1) & 1) + (((o) >> 2) & 1)))
#define SPLIT(o) (COUNTS_PARTS * (((o) != 0 && (o) != 7) + ((o) == 2)))
#define FIRST_FREE(o) (!((o) & 1) -> 0 : (!((o) & 2) -> 1 : 2))
#endif

/* Counter k of a set of allocated slots. */
#define VALUE(k, o) ((1 - (k)) * COUNT(o) + (k) * SPLIT(o))

#if CACHES == 2
#define NOW(k) (VALUE(k, cache[0].out) + VALUE(k, cache[1].out))
#define QUOTAS(k) (cache[0].quota[k] + cache[1].quota[k])
#define USED(k) (AT_CURSOR(0, k) + AT_CURSOR(1, k))
#define IN_QUOTA(k) \
    (AT_CURSOR(0, k) <= cache[0].quota[k] && AT_CURSOR(1, k) <= cache[1].quota[k])
#define HOLDS_NONE (cache[0].lock != SELF && cache[1].lock != SELF)
#define ANY_OPEN (cache[0].open || cache[1].open)
#define OPEN (cache[0].open + cache[1].open)
#else
#define NOW(k) (VALUE(k, cache[0].out) + VALUE(k, cache[1].out) + VALUE(k, cache[2].out))
#define QUOTAS(k) (cache[0].quota[k] + cache[1].quota[k] + cache[2].quota[k])
#define USED(k) (AT_CURSOR(0, k) + AT_CURSOR(1, k) + AT_CURSOR(2, k))
#define IN_QUOTA(k) \
    (AT_CURSOR(0, k) <= cache[0].quota[k] && AT_CURSOR(1, k) <= cache[1].quota[k] && \
     AT_CURSOR(2, k) <= cache[2].quota[k])
#define HOLDS_NONE (cache[0].lock != SELF && cache[1].lock != SELF && cache[2].lock != SELF)
#define ANY_OPEN (cache[0].open || cache[1].open || cache[2].open)
#define OPEN (cache[0].open + cache[1].open + cache[2].open)
#endif

/* What entry i does to counter k. */
#define CHANGE(c, k, i) ((1 - (k)) * COUNTS_BLOCKS + (k) * cache[c].parts[i])

/* cache_used: of counter k, were the cursor there. */
#define WERE(c, k, i, there) (((i) < (there)) - ((i) < cache[c].counted)) * CHANGE(c, k, i)
#define AT(c, k, there) (cache[c].used[k] + WERE(c, k, 0, there) + WERE(c, k, 1, there))
#define AT_CURSOR(c, k) AT(c, k, cache[c].cursor)
#define COVERS(c, there) \
    (AT(c, BLOCKS, there) <= cache[c].quota[BLOCKS] && \
     AT(c, PARTS, there) <= cache[c].quota[PARTS])

/* What is shown, at every moment. */
#define PEAKS_ADD_UP(k) (peak[k] + QUOTAS(k) == top[k])
#define SUMS_ADD_UP(k) (current[k] + USED(k) == NOW(k))
#define HOLDS(k) (PEAKS_ADD_UP(k) && SUMS_ADD_UP(k) && IN_QUOTA(k))

active proctype Monitor()
{
end:
    atomic {
        !(HOLDS(BLOCKS) && HOLDS(PARTS)) ->
        assert(PEAKS_ADD_UP(BLOCKS) && PEAKS_ADD_UP(PARTS));
        assert(IN_QUOTA(BLOCKS) && IN_QUOTA(PARTS));
        assert(SUMS_ADD_UP(BLOCKS) && SUMS_ADD_UP(PARTS))
    }
}

#define SAY(how, c, s) printf(how, me, c, s)

#ifdef TRACE
#define TELL(how, c, s) printf(how, me, c, s) /* of interest to traces alone */
byte turn; /* thread + 1 that is in a call which a cache serves; 0: none */
#define MY_TURN (turn == 0 || turn == SELF)
#define IN_MAP  ((cache[c].mapped >> s) & 1)
#define HAS_FREE (cache[c].out != FULL)
#define ASKED   1
#define BUSY    2
#define MAY_GIVE (answer != BUSY)
#define MAY_BE_BUSY (answer != ASKED)
#define TELL_ASKED answer = ASKED;
#define TELL_BUSY answer = BUSY;

/* What nobody is changing now. */
inline show_cache(o)
{
    if
    :: cache[o].open && (cache[o].lock == 0 || cache[o].lock == SELF) ->
        printf("%d cache %d %d %d %d %d %d %d %d %d %d\n", me, o, cache[o].quota[BLOCKS],
            cache[o].quota[PARTS], AT_CURSOR(o, BLOCKS), AT_CURSOR(o, PARTS), cache[o].end,
            cache[o].cursor, cache[o].counted, cache[o].floor, cache[o].ceiling)
    :: else
    fi
}
#else
#define TELL(how, c, s)
#define MY_TURN true
#define IN_MAP true
#define HAS_FREE true
#define MAY_GIVE true
#define MAY_BE_BUSY true
#define TELL_ASKED
#define TELL_BUSY
#endif

inline raise(to, by)
{
    if
    :: by > to -> to = by
    :: else
    fi
}

/* A call took effect: its state counts for the peaks. */
inline note()
{
    raise(top[BLOCKS], NOW(BLOCKS));
    raise(top[PARTS], NOW(PARTS))
}

/* ---- locks ---- */

/* Who holds a cache's lock waits for none, unless it is the holder of the heap's. */
inline lock_heap()
{
    heap_lock == 0 ->
    assert(HOLDS_NONE);
    heap_lock = SELF
}

inline lock_cache(c)
{
    cache[c].lock == 0 ->
    assert(HOLDS_NONE || heap_lock == SELF);
    cache[c].lock = SELF
}

/* ---- the undo log ---- */

inline log_count(c)
{
    cache[c].used[BLOCKS] = AT_CURSOR(c, BLOCKS);
    cache[c].used[PARTS] = AT_CURSOR(c, PARTS);
    cache[c].counted = cache[c].cursor
}

/* Both unused entries are 0. */
inline log_cut(c)
{
    if
    :: cache[c].end < 2 -> cache[c].slot[1] = 0; cache[c].parts[1] = 0
    :: else
    fi;
    if
    :: cache[c].end < 1 -> cache[c].slot[0] = 0; cache[c].parts[0] = 0
    :: else
    fi
}

inline log_move_to(c, there)
{
    cache[c].cursor = there;
    cache[c].counted = there;
    cache[c].floor = 0;
    cache[c].ceiling = cache[c].end
}

inline log_flush(c)
{
    if
    :: cache[c].cursor < cache[c].end ->
        assert(cache[c].counted == cache[c].cursor);
        cache[c].end = cache[c].cursor;
        log_move_to(c, cache[c].cursor);
        log_cut(c)
    :: else
    fi
}

inline log_invalidate(c)
{
    log_flush(c);
    cache[c].end = 0;
    log_move_to(c, 0);
    log_cut(c)
}

inline log_add(c)
{
    assert(cache[c].cursor == cache[c].end && cache[c].counted == cache[c].cursor);
    if
    :: cache[c].end == ENTRIES -> /* log_shorten */
        cache[c].slot[0] = cache[c].slot[1];
        cache[c].parts[0] = cache[c].parts[1];
        cache[c].end = 1
    :: else
    fi;
    cache[c].slot[cache[c].end] = s;
    cache[c].parts[cache[c].end] = change;
    cache[c].end++;
    log_move_to(c, cache[c].end)
}

/* An allocation gets an entry or none (backoff). */
inline log_add_or_not(c)
{
    if
#ifndef NO_LOG
    :: log_add(c)
#ifdef TRACE
    :: log_add(c)
    :: log_add(c)
#endif
#endif
    :: log_invalidate(c); TELL("%d own %d bare %d\n", c, 0)
    fi
}

/* cache_set_limits */
inline set_limits(c)
{
    if
    :: cache[c].end > 0 ->
        assert(COVERS(c, cache[c].cursor));
        cache[c].ceiling = cache[c].cursor;
        do
        :: cache[c].ceiling < cache[c].end && COVERS(c, cache[c].ceiling + 1) -> cache[c].ceiling++
        :: else -> break
        od;
        cache[c].floor = cache[c].cursor;
        do
        :: cache[c].floor > 0 && COVERS(c, cache[c].floor - 1) -> cache[c].floor--
        :: else -> break
        od
    :: else
    fi
}

inline slot_alloc()
{
    cache[c].out = cache[c].out | (1 << s);
    cache[c].held = cache[c].held | (1 << s);
#ifdef TRACE
    cache[c].mapped = (cache[c].mapped & ~(1 << s)) | (cache[c].open << s);
#endif
    note()
}

inline slot_free()
{
    cache[c].out = cache[c].out & ~(1 << s);
    note()
}

inline log_redo()
{
    s = cache[c].slot[cache[c].cursor];
    cache[c].cursor++;
    slot_alloc()
}

inline log_undo()
{
    cache[c].cursor--;
    slot_free()
}

/* ---- quota ---- */

/* cache_take_quota, of one counter */
inline take_counter(c, o, k)
{
    lacking = wanted[k] - cache[c].quota[k];
    idle = cache[o].quota[k] - AT_CURSOR(o, k);
    if
    :: lacking > 0 ->
        raise(lacking, idle / 2);
        if
        :: lacking > idle -> lacking = idle
        :: else
        fi;
        cache[c].quota[k] = cache[c].quota[k] + lacking;
        cache[o].quota[k] = cache[o].quota[k] - lacking
    :: else
    fi
}

inline take_quota(c, o)
{
    take_counter(c, o, BLOCKS);
    take_counter(c, o, PARTS);
    lacking = 0;
    idle = 0;
#ifndef KEEP_LIMITS
    set_limits(o)
#endif
}

#define WANTS(c) (wanted[BLOCKS] > cache[c].quota[BLOCKS] || wanted[PARTS] > cache[c].quota[PARTS])

/* cache_ask, until enough is found or all were asked: the biased lock can refuse without need. */
inline ask_next()
{
    if
    :: i < known && WANTS(c) ->
        other = (c + i) % known;
        i++;
        if
#ifdef UNLOCKED
        :: true -> take_quota(c, other)
#else
        :: cache[other].lock == 0 && MAY_GIVE ->
            TELL_ASKED
            cache[other].lock = SELF;
            if
            :: cache[other].open -> take_quota(c, other); SAY("%d own %d ask %d\n", c, other)
            :: else
            fi;
            cache[other].lock = 0
#ifndef WAIT
        :: MAY_BE_BUSY -> TELL_BUSY SAY("%d own %d busy %d\n", c, other)
#endif
#endif
        fi
    :: else ->
        found = !WANTS(c);
        set_limits(c);
        wanted[BLOCKS] = 0;
        wanted[PARTS] = 0;
        known = 0;
        i = 0;
        at = next;
        next = 0
    fi;
    other = 0
}

/* cache_find_quota, one round, then on with that stage; `found`: wanted is there. */
inline find_quota(stage)
{
    known = created;
    i = 1;
    next = stage;
    at = ASK
}

/* ---- calls that a cache serves ---- */

inline want_cursor(there)
{
    wanted[BLOCKS] = AT(c, BLOCKS, there);
    wanted[PARTS] = AT(c, PARTS, there)
}

inline want_change(blocks, parts_change)
{
    wanted[BLOCKS] = cache[c].used[BLOCKS] + blocks;
    wanted[PARTS] = cache[c].used[PARTS] + parts_change
}

/* Unless the quota has it, others are asked first. */
inline may_change(stage)
{
    if
    :: WANTS(c) -> find_quota(stage)
    :: else ->
        wanted[BLOCKS] = 0;
        wanted[PARTS] = 0;
        found = true;
        at = stage
    fi
}

#define REDOES (cache[c].cursor < cache[c].ceiling)
#define UNDOES \
    (cache[c].cursor > cache[c].floor && cache[c].slot[cache[c].cursor - 1] == s)
#define AT_CEILING (cache[c].cursor == cache[c].ceiling && cache[c].cursor < cache[c].end)
#define AT_FLOOR (cache[c].cursor > 0 && cache[c].cursor == cache[c].floor)

inline cache_leave()
{
#ifdef TRACE
    TELL("%d own %d leave %d\n", c, 0);
    show_cache(0);
    show_cache(1);
    turn = 0;
    answer = 0;
#endif
    cache[c].lock = 0;
    if
    :: served -> finish()
    :: else -> at = HEAP
    fi
}

inline cache_enter()
{
    lock_cache(c);
#ifdef TRACE
    turn = SELF;
#endif
    if
    :: !cache[c].open -> cache_leave()
    :: cache[c].open && frees && !UNDOES && AT_FLOOR ->
        want_cursor(cache[c].cursor - 1);
        find_quota(UNDO)
    :: cache[c].open && frees && (UNDOES || !AT_FLOOR) -> at = UNDO
    :: cache[c].open && !frees && AT_CEILING ->
        want_cursor(cache[c].cursor + 1);
        find_quota(REDO)
    :: cache[c].open && !frees && !AT_CEILING -> at = REDO
    fi
}

/* No block fits, or no spare node is left. */
inline cache_miss()
{
    log_count(c);
    log_flush(c);
#ifndef MISS_KEEPS_LIMITS
    set_limits(c);
#endif
    SAY("%d own %d miss %d\n", c, 0);
    cache_leave()
}

inline cache_find_block()
{
    log_count(c);
    log_flush(c);
    s = FIRST_FREE(cache[c].out);
    change = SPLIT(cache[c].out | (1 << s)) - SPLIT(cache[c].out);
    want_change(COUNTS_BLOCKS, change);
    may_change(APPLY)
}

inline cache_served_again()
{
    log_redo();
    served = true;
    SAY("%d own %d redo %d\n", c, s);
    cache_leave()
}

/* cache_redo, and cache_serve until the quota is looked at. Whether the request is that of the
 * entry: maybe. */
inline cache_redo()
{
    found = false;
    if
    :: REDOES -> cache_served_again()
#ifdef TRACE
    :: REDOES -> cache_served_again()
    :: REDOES -> cache_served_again()
#endif
    :: AT_CEILING -> SAY("%d own %d held %d\n", c, 0); cache_leave()
    :: !AT_CEILING -> cache_miss()
    :: !AT_CEILING && cache[c].out != FULL -> cache_find_block()
#ifdef TRACE
    :: !AT_CEILING && cache[c].out != FULL -> cache_find_block()
    :: !AT_CEILING && cache[c].out != FULL -> cache_find_block()
#endif
    fi
}

inline cache_find_allocated()
{
    change = SPLIT(cache[c].out & ~(1 << s)) - SPLIT(cache[c].out);
    want_change(-COUNTS_BLOCKS, COUNTS_PARTS);
#ifdef FREE_NEEDS_NONE
    want_change(-9, -9);
#endif
    may_change(APPLY)
}

/* cache_undo, and cache_free until the quota is looked at: a free part more, at most. */
inline cache_undo()
{
    found = false;
    if
    :: UNDOES ->
        log_undo();
        served = true;
        SAY("%d own %d undo %d\n", c, s);
        cache_leave()
    :: else ->
        log_count(c);
        log_invalidate(c);
        if
        :: true -> /* not in this cache's map, or used by other streams */
            SAY("%d own %d flush %d\n", c, 0);
            cache_leave()
        :: IN_MAP -> cache_find_allocated()
#ifdef TRACE
        :: IN_MAP -> cache_find_allocated()
        :: IN_MAP -> cache_find_allocated()
#endif
        fi
    fi
}

inline change_used()
{
    cache[c].used[BLOCKS] = cache[c].used[BLOCKS] + COUNTS_BLOCKS * (1 - 2 * frees);
    cache[c].used[PARTS] = cache[c].used[PARTS] + change
}

/* The rest of cache_serve and of cache_free. */
inline cache_apply()
{
    served = found;
    if
    :: !found && frees -> SAY("%d own %d no_free %d\n", c, s)
    :: !found && !frees -> SAY("%d own %d no_alloc %d\n", c, s)
    :: found && frees ->
        slot_free();
        change_used();
        SAY("%d own %d free %d\n", c, s)
    :: found && !frees ->
        slot_alloc();
        change_used();
        SAY("%d own %d alloc %d\n", c, s);
        log_add_or_not(c);
        set_limits(c)
    fi;
    change = 0;
    cache_leave()
}

/* ---- with the heap's lock ---- */

inline move(k, by)
{
    current[k] = current[k] + by;
    raise(peak[k], current[k])
}

/* tn_quota_fold */
inline fold(c)
{
    move(BLOCKS, cache[c].used[BLOCKS]);
    move(PARTS, cache[c].used[PARTS]);
    cache[c].used[BLOCKS] = 0;
    cache[c].used[PARTS] = 0
}

inline return_counter(c, k)
{
#ifdef CLAMP
    raise(cache[c].quota[k], 0); /* as if it could not be negative */
#endif
    peak[k] = peak[k] + cache[c].quota[k];
    cache[c].quota[k] = 0
}

/* cache_return_quota */
inline return_quota(c)
{
    log_count(c);
#ifdef FOLD_FIRST
    fold(c);
#endif
    return_counter(c, BLOCKS);
    return_counter(c, PARTS);
    fold(c)
}

/* One cache of tn_stream_caches_collect; all collected, the heap has the truth. */
inline collect_next()
{
    if
    :: i < CACHES && cache[i].open ->
        lock_cache(i);
        return_quota(i);
        i++
    :: i < CACHES && !cache[i].open -> i++
    :: i == CACHES ->
        assert(peak[BLOCKS] == top[BLOCKS] && peak[PARTS] == top[PARTS]);
        assert(current[BLOCKS] == NOW(BLOCKS) && current[PARTS] == NOW(PARTS));
        i = 0;
        at = WORK
    fi
}

/* cache_needs and cache_share, of one counter */
inline share_out(c, k)
{
    share = 0;
    p = 0;
    do
    :: p <= cache[c].end -> raise(share, AT(c, k, p) - AT_CURSOR(c, k)); p++
    :: else -> break
    od;
    raise(share, room[k] / left);
    if
    :: share > room[k] -> share = room[k]
    :: else
    fi;
#ifndef ROOM_FOR_EACH
    room[k] = room[k] - share;
#endif
    peak[k] = peak[k] - share;
    cache[c].quota[k] = share;
    share = 0;
    p = 0
}

/* tn_stream_caches_redistribute, from any cache on; `left` of them are open. */
inline share_begin()
{
    room[BLOCKS] = peak[BLOCKS] - current[BLOCKS];
    room[PARTS] = peak[PARTS] - current[PARTS];
    left = OPEN;
    i = 0;
    if
    :: true -> f = 0
    :: left > 1 -> f = 1
#if CACHES > 2
    :: left > 1 -> f = 2
#endif
    fi;
    TELL("%d heap %d first %d\n", f, 0);
    at = SHARE
}

inline share_next()
{
    if
    :: left > 0 && cache[f].open ->
        share_out(f, BLOCKS);
        share_out(f, PARTS);
        set_limits(f);
#ifdef TRACE
        show_cache(f);
#endif
        cache[f].lock = 0;
        left--;
        f = (f + 1) % CACHES
    :: left > 0 && !cache[f].open -> f = (f + 1) % CACHES
    :: left == 0 ->
        heap_lock = 0;
        f = 0;
        room[BLOCKS] = 0;
        room[PARTS] = 0;
        finish()
    fi
}

/* tn_stream_caches_close, and fast_drop */
inline close_all()
{
    do
    :: i < CACHES ->
        if
        :: cache[i].open ->
            log_invalidate(i);
            cache[i].open = false;
            cache[i].lock = 0
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    SAY("%d heap %d close %d\n", 0, 0)
}

/* caches_open. The order of the caches' locks does not matter: only the holder of the heap's waits
 * for more than one. */
inline open_one()
{
    lock_cache(c);
    cache[c].open = true;
    raise(created, c + 1);
    SAY("%d heap %d open %d\n", c, 0);
    heap_serve()
}

/* side_serve; what is served without a cache is counted at once. Without a free block the device
 * is asked. */
inline heap_serve()
{
    if
    :: cache[c].out != FULL ->
        s = FIRST_FREE(cache[c].out);
        change = SPLIT(cache[c].out | (1 << s)) - SPLIT(cache[c].out);
        log_flush(c);
        slot_alloc();
        SAY("%d heap %d alloc %d\n", c, s);
        if
        :: cache[c].open ->
            change_used();
            log_add_or_not(c);
            fold(c)
        :: else ->
            move(BLOCKS, COUNTS_BLOCKS);
            move(PARTS, change)
        fi;
        change = 0
#ifdef TRACE
    :: else -> TELL("%d heap %d full %d\n", c, 0)
#else
    :: else
#endif
    fi;
    share_begin()
}

/* fast_alloc_locked */
inline heap_alloc()
{
    if
    :: cache[c].open && cache[c].cursor < cache[c].end ->
        cache[c].ceiling = cache[c].end;
        log_redo();
        log_count(c);
        fold(c);
        SAY("%d heap %d redo %d\n", c, s);
        share_begin()
#ifndef ALWAYS_OPEN
    :: ANY_OPEN -> close_all(); heap_serve()
#endif
    :: !cache[c].open && c <= created && HAS_FREE -> at = OPENING
    :: true -> heap_serve()
#ifdef TRACE /* caches are open for longer */
    :: !cache[c].open && c <= created && HAS_FREE -> at = OPENING
    :: true -> heap_serve()
    :: true -> heap_serve()
    :: true -> heap_serve()
#endif
    fi
}

/* tn_fast_free_slow */
inline heap_free()
{
#ifndef ALWAYS_OPEN
    if
    :: ANY_OPEN -> close_all()
    :: true
#ifdef TRACE /* caches are open for longer */
    :: true
    :: true
    :: true
#endif
    fi;
#endif
    change = SPLIT(cache[c].out & ~(1 << s)) - SPLIT(cache[c].out);
    log_invalidate(c);
    slot_free();
    move(BLOCKS, -COUNTS_BLOCKS);
    move(PARTS, change);
    SAY("%d heap %d free %d\n", c, s);
    change = 0;
    share_begin()
}

/* Everything else that takes the heap's lock. */
inline heap_other()
{
    if
    :: true -> SAY("%d heap %d read %d\n", 0, 0)
#ifndef ALWAYS_OPEN
    :: true ->
        top[BLOCKS] = NOW(BLOCKS);
        top[PARTS] = NOW(PARTS);
        peak[BLOCKS] = current[BLOCKS];
        peak[PARTS] = current[PARTS];
        SAY("%d heap %d reset %d\n", 0, 0)
    :: ANY_OPEN -> close_all()
#endif
#ifdef TRACE /* caches are open for longer */
    :: true -> SAY("%d heap %d read %d\n", 0, 0)
#endif
    fi;
    share_begin()
}

/* ---- threads ---- */

/* A caller frees a block that it has, once. */
inline pick()
{
    if
    :: cache[c].held & 1 -> s = 0
    :: cache[c].held & 2 -> s = 1
#if SLOTS > 2
    :: cache[c].held & 4 -> s = 2
#endif
    fi;
    cache[c].held = cache[c].held & ~(1 << s);
    frees = true
}

inline begin_any()
{
    if
    :: true -> at = ENTER
    :: cache[c].held -> pick(); at = ENTER
    :: HAS_FREE -> at = HEAP /* the thread used another cache last */
    :: cache[c].held -> pick(); at = HEAP
    :: c == 0 -> other_work = true; at = HEAP
    fi
}

inline begin()
{
    if
    :: c = 0
    :: c = 1
#if CACHES > 2
    :: c = 2
#endif
    fi;
#ifdef TRACE /* more of what a cache serves */
    if
    :: cache[c].open && HAS_FREE -> at = ENTER
    :: cache[c].open && HAS_FREE -> at = ENTER
    :: cache[c].open && HAS_FREE -> at = ENTER
    :: cache[c].open && cache[c].held -> pick(); at = ENTER
    :: cache[c].open && cache[c].held -> pick(); at = ENTER
    :: cache[c].open && cache[c].held -> pick(); at = ENTER
    :: true -> begin_any()
    fi
#else
    begin_any()
#endif
}

inline finish()
{
    c = 0;
    s = 0;
    frees = false;
    other_work = false;
    served = false;
    at = IDLE
}

proctype Thread(byte me)
{
    byte at = IDLE;
    byte next;
    byte c; /* of this call */
    byte s;
    bool frees;
    bool other_work;
    bool served;
    bool found;
    byte i;
    byte f;
    byte p;
    byte known;
    byte other;
    byte left;
    short wanted[2];
    short change;
    short lacking;
    short idle;
    short share;
    short room[2];
#ifdef TRACE
    byte answer; /* of the other cache, in this call */
#endif

    do
    :: atomic { MY_TURN && at == IDLE -> begin() }
#ifndef TRACE
    :: at == IDLE -> break /* so that one who waits for ever is found: the others may stop */
#endif
    :: atomic { MY_TURN && at == ENTER && cache[c].lock == 0 -> cache_enter() }
    :: atomic { MY_TURN && at == ASK -> ask_next() }
    :: atomic { MY_TURN && at == REDO -> cache_redo() }
    :: atomic { MY_TURN && at == UNDO -> cache_undo() }
    :: atomic { MY_TURN && at == APPLY -> cache_apply() }
    :: atomic { MY_TURN && at == HEAP && heap_lock == 0 -> lock_heap(); at = COLLECT }
    :: atomic { MY_TURN && at == COLLECT -> collect_next() }
    :: atomic { MY_TURN && at == WORK && other_work -> heap_other() }
    :: atomic { MY_TURN && at == WORK && !other_work && frees -> heap_free() }
    :: atomic { MY_TURN && at == WORK && !other_work && !frees -> heap_alloc() }
    :: atomic { MY_TURN && at == OPENING && cache[c].lock == 0 -> open_one() }
    :: atomic { MY_TURN && at == SHARE -> share_next() }
    od
}

init
{
    atomic {
#ifdef ALWAYS_OPEN
        cache[0].open = true;
        cache[1].open = true;
        created = 2;
#endif
        run Thread(0);
#if THREADS > 1
        run Thread(1);
#endif
#if THREADS > 2
        run Thread(2)
#endif
    }
}
