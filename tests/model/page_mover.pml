/* SPDX-License-Identifier: MIT */
/*
 * The compact policy's pages (src/alloc/compact): one allocator, two streams that run behind it, and
 * three physical pages. Stream s has the places 2s and 2s+1, addresses of one page each; place 4 is
 * that of a private pool whose graph may be replayed at any time on stream 0.
 *
 * A stream is a queue of uses, recorded events and waits. A use names a place and the block that
 * lived there; when it runs, the place must be mapped to the block's page, and no use of a later
 * block of that page may have run before. The allocator is not modelled as it finds places and
 * counts, only as it decides who may have which page, and when an address may be unmapped.
 *
 * Parts that can be left out, because all together are too many states: -DNO_STORE, -DNO_SHARING
 * (uses on the other stream), -DNO_PRIVATE.
 *
 * What is printed is what is done, and where pages are then. With -DTRACE of what the allocator may
 * do it does what the code does, as trace_request says, in the same steps, which still must be
 * possible; events and waits take no time. So its runs are runs of the model, but for the numbers:
 * it needs -DQUEUE=7 or more. -DSLOW: the device is behind. For replay_pages.c.
 *
 * The wrong variants: -DUNMAP_AT_ONCE, -DTAKE_BUSY, -DNO_WAIT, -DKEEP_FOR_ALL, -DSAME_EPOCH,
 * -DTAKE_PRIVATE, -DFREE_IN_USE.
 */
#ifndef CALLS
#define CALLS 3 /* allocations */
#endif
#ifndef MARKS
#define MARKS 1
#endif
#define PAGES   3
#define PLACES  5
#define PRIVATE 4
#ifdef TRACE
#define NONE    255 /* above all numbers of events */
#else
#define NONE    15
#endif
#ifndef QUEUE
#define QUEUE   2
#endif
#ifndef REPLAYS
#define REPLAYS 2
#endif

mtype = { use, event, wait };

#define STREAM(place) ((place) == PRIVATE -> 0 : (place) / 2)

/* What runs on the device: place and block of a use; number of an event; stream and number waited
 * for. */
chan queue[2] = [QUEUE] of { mtype, byte, byte };

byte recorded[2];  /* events queued */
byte passed[2];    /* events run */

byte at_place[PLACES] = NONE; /* page mapped there, as the device sees it */
byte page[PLACES] = NONE;     /* the same, as the allocator's records have it */
byte block[PLACES];           /* number of the block that lives or lived there */
bool live[PLACES];
bool waits[PLACES];           /* freed, and used on the other stream */
byte waits_for[PLACES];       /* event of that stream */
bool shared[PLACES];          /* used on the other stream */
byte epoch_of[PLACES];        /* in which it became free */
bool retired[PLACES];
bool has_event[PLACES];       /* what a retired place waits for */
byte event_of[PLACES];

byte kept = NONE; /* a page in the store, of a stream and an epoch */
byte kept_by;
byte kept_epoch;

byte epoch;
byte over[2];     /* epochs before this one are known to be done */
byte marks;
byte mark_of[2] = NONE; /* event of the stream's mark that is not known to be done */
byte mark_epoch[2];

byte created;
byte replays;
byte blocks;
byte owner[PAGES];   /* block that a page was given to last */
byte touched[PAGES]; /* block of the last use that ran */
byte owner_page[CALLS + 2] = NONE; /* page of a block */

inline record(s)
{
    recorded[s]++;
    queue[s] ! event, recorded[s], 0
}

/* Room in the queue of a stream is room for the allocator's own work, too. */
#define ROOM(s) (len(queue[s]) < QUEUE)

inline give(q, p) /* the page to a new block at the place */
{
    blocks++;
    page[q] = p;
    at_place[q] = p;
    block[q] = blocks;
    live[q] = true;
    shared[q] = false;
    owner_page[blocks] = p;
    queue[STREAM(q)] ! use, q, blocks
}

/* A free page of place f moves to place q. */
inline move(f, q, with_event, number)
{
    p = page[f];
    page[f] = NONE;
    retired[f] = true;
    has_event[f] = with_event;
    event_of[f] = number;
#ifdef UNMAP_AT_ONCE
    retired[f] = false;
    at_place[f] = NONE;
#endif
    give(q, p);
    p = 0
}

#define IDLE(f)  (page[f] != NONE && !live[f] && !waits[f])
#ifdef TAKE_PRIVATE
#define MAY_MOVE(f) IDLE(f)
#else
#define MAY_MOVE(f) (IDLE(f) && f != PRIVATE)
#endif
#ifdef TAKE_BUSY
#define IS_DONE(f) true
#else
#define IS_DONE(f) (epoch_of[f] < over[STREAM(f)])
#endif
#define CAN_BE_FILLED(q) (page[q] == NONE && !retired[q] && !live[q])

mtype = { in_place, same_stream, done_with, made, in_order, from_store, kept_in_order, keeps,
    captured, replayed, used, freed, completed, marked, mark_done, unmapped, ran };

/* The action, its place or stream, and the page of each place, NONE where it has none. */
#define SAY(action, number)                                                                        \
    printf("trace %e %d %d %d %d %d %d\n", action, number, page[0], page[1], page[2], page[3],     \
        page[4])

/* ---- what the allocator may do ---- */

#define MAY_FOLLOW(q, f)                                                                           \
    (CAN_BE_FILLED(q) && f != q && MAY_MOVE(f) && STREAM(f) == STREAM(q) &&                        \
     len(queue[STREAM(q)]) < QUEUE - 1)
#define MAY_GET_DONE(q, f) \
    (CAN_BE_FILLED(q) && MAY_MOVE(f) && STREAM(f) != STREAM(q) && IS_DONE(f))
#define MAY_WAIT(q, f)                                                                             \
    (CAN_BE_FILLED(q) && MAY_MOVE(f) && STREAM(f) != STREAM(q) && ROOM(STREAM(f)) &&               \
     len(queue[STREAM(q)]) < QUEUE - 1)
#define MAY_MAKE(q) (CAN_BE_FILLED(q) && created < PAGES)
#ifdef KEEP_FOR_ALL
#define MAY_GET_KEPT(q) (CAN_BE_FILLED(q) && kept != NONE)
#else
#define MAY_GET_KEPT(q) \
    (CAN_BE_FILLED(q) && kept != NONE && (kept_by == STREAM(q) || kept_epoch < over[kept_by]))
#endif
#define MAY_WAIT_FOR_KEPT(q)                                                                       \
    (CAN_BE_FILLED(q) && kept != NONE && kept_by != STREAM(q) && ROOM(kept_by) &&                  \
     len(queue[STREAM(q)]) < QUEUE - 1)
#define MAY_KEEP(q, f)                                                                             \
    (CAN_BE_FILLED(q) && kept == NONE && f != q && MAY_MOVE(f) && STREAM(f) == STREAM(q) &&        \
     ROOM(STREAM(f)))
#define MAY_CAPTURE  (blocks < CALLS && page[PRIVATE] == NONE && created < PAGES && ROOM(0))
#define MAY_REPLAY   (page[PRIVATE] != NONE && ROOM(0) && replays < REPLAYS)
#define MAY_COMPLETE(f) (waits[f] && passed[1 - STREAM(f)] >= waits_for[f])
#define MAY_MARK(s)     (mark_of[s] == NONE && ROOM(s))
#define MARK_IS_DONE(s) (mark_of[s] != NONE && passed[s] >= mark_of[s])
#define MAY_UNMAP(f)    (retired[f] && (!has_event[f] || passed[STREAM(f)] >= event_of[f]))

/* In place: the stream's own order. */
inline take_in_place(q)
{
    assert(IDLE(q) && ROOM(STREAM(q)));
    give(q, page[q]);
    SAY(in_place, q)
}

inline take_same_stream(q, f)
{
    assert(MAY_FOLLOW(q, f));
    record(STREAM(f));
    move(f, q, true, recorded[STREAM(f)]);
    SAY(same_stream, q)
}

inline take_done(q, f)
{
    assert(MAY_GET_DONE(q, f) && ROOM(STREAM(q)));
    move(f, q, false, 0);
    SAY(done_with, q)
}

inline take_in_order(q, f)
{
    assert(MAY_WAIT(q, f));
    record(STREAM(f));
#ifndef NO_WAIT
    queue[STREAM(q)] ! wait, STREAM(f), recorded[STREAM(f)];
#endif
    move(f, q, true, recorded[STREAM(f)]);
    SAY(in_order, q)
}

inline take_made(q)
{
    assert(MAY_MAKE(q) && ROOM(STREAM(q)));
    created++;
    give(q, created - 1);
    SAY(made, q)
}

inline take_kept(q)
{
    assert(MAY_GET_KEPT(q) && ROOM(STREAM(q)));
    p = kept;
    kept = NONE;
    give(q, p);
    p = 0;
    SAY(from_store, q)
}

inline take_kept_in_order(q)
{
    assert(MAY_WAIT_FOR_KEPT(q));
    record(kept_by);
    queue[STREAM(q)] ! wait, kept_by, recorded[kept_by];
    p = kept;
    kept = NONE;
    give(q, p);
    p = 0;
    SAY(kept_in_order, q)
}

/* A request for q fails: what was taken for it is kept. */
inline keep(q, f)
{
    assert(MAY_KEEP(q, f));
    record(STREAM(f));
    kept = page[f];
    kept_by = STREAM(f);
    kept_epoch = epoch;
    page[f] = NONE;
    retired[f] = true;
    has_event[f] = true;
    event_of[f] = recorded[STREAM(f)];
    SAY(keeps, q)
}

inline capture()
{
    assert(MAY_CAPTURE);
    created++;
    give(PRIVATE, created - 1);
    SAY(captured, PRIVATE)
}

inline replay()
{
    assert(MAY_REPLAY);
    replays++;
    queue[0] ! use, PRIVATE, block[PRIVATE];
    SAY(replayed, PRIVATE)
}

/* What was used on the other stream is free once that is done. */
inline complete(f)
{
    assert(MAY_COMPLETE(f));
    waits[f] = false;
    epoch_of[f] = epoch;
    SAY(completed, f)
}

inline mark(s)
{
    assert(MAY_MARK(s));
    record(s);
    mark_of[s] = recorded[s];
    mark_epoch[s] = epoch;
#ifndef SAME_EPOCH
    epoch++;
#endif
    SAY(marked, s)
}

inline end_mark(s)
{
    assert(MARK_IS_DONE(s));
    mark_of[s] = NONE;
    over[s] = mark_epoch[s] + 1;
    SAY(mark_done, s)
}

/* An old address. */
inline unmap(f)
{
    assert(MAY_UNMAP(f));
    retired[f] = false;
    at_place[f] = NONE;
    SAY(unmapped, f)
}

/* ---- what the device does ---- */

inline run_use(s)
{
    queue[s] ? use, a, b;
    assert(at_place[a] == owner_page[b]); /* mapped, to the block's page */
    assert(touched[owner_page[b]] <= b);  /* no later block was there before */
    touched[owner_page[b]] = b;
    SAY(ran, s)
}

inline run_event(s)
{
    queue[s] ? event, a, b;
    passed[s] = a
}

#ifdef TRACE
/* ---- of all this, what the code does ---- */

/* What the device does at once: events, and waits for events that have passed. */
inline settle_stream(s)
{
    do
    :: queue[s] ? [event] -> run_event(s)
    :: queue[s] ? [wait] ->
        queue[s] ? <wait, a, b>;
        if
        :: passed[a] >= b -> queue[s] ? wait, a, b
        :: else -> break
        fi
    :: else -> break
    od
}

inline settle()
{
    settle_stream(0);
    settle_stream(1);
    settle_stream(0);
    settle_stream(1);
    a = 0;
    b = 0
}

/* What a request looks at first: frees that have completed, marks that are done, old addresses. */
inline look_place(f)
{
    if
    :: MAY_COMPLETE(f) -> complete(f)
    :: else
    fi;
    if
    :: MAY_UNMAP(f) -> unmap(f)
    :: else
    fi
}

inline look_mark(s)
{
    if
    :: MARK_IS_DONE(s) -> end_mark(s)
    :: else
    fi
}

inline look()
{
    look_place(0);
    look_place(1);
    look_place(2);
    look_place(3);
    look_mark(0);
    look_mark(1)
}

/* Whether the page became free after the last mark of its stream. */
#define NEWER(f)    (IDLE(f) && epoch_of[f] >= over[STREAM(f)])
#define UNMARKED(f) (NEWER(f) && (mark_of[STREAM(f)] == NONE || epoch_of[f] > mark_epoch[STREAM(f)]))

inline mark_newer(s)
{
    if
    :: UNMARKED(2 * s) || UNMARKED(2 * s + 1) -> mark(s)
    :: else
    fi
}

/* Place q gets a page from where the code gets it. */
inline trace_take(q)
{
    if
    :: MAY_GET_KEPT(q) -> take_kept(q)
    :: !MAY_GET_KEPT(q) && MAY_MOVE((q ^ 1)) -> f = q ^ 1; take_same_stream(q, f)
    :: else ->
        f = 2 * (1 - STREAM(q)) + 1; /* large blocks first */
        if
        :: MAY_GET_DONE(q, f) -> skip
        :: else -> f = f - 1
        fi;
        if
        :: MAY_GET_DONE(q, f) -> take_done(q, f)
        :: else ->
            if
            :: created < PAGES -> take_made(q)
            :: created == PAGES && kept != NONE -> take_kept_in_order(q)
            :: else ->
                f = 2 * (1 - STREAM(q)) + 1;
                if
                :: MAY_MOVE(f) -> skip
                :: else -> f = f - 1
                fi;
                take_in_order(q, f)
            fi
        fi
    fi
}

/* What will be when a request has looked. */
#define READY(f) (IDLE(f) || MAY_COMPLETE(f))
#define FILLABLE(f)                                                                                \
    (page[f] == NONE && !live[f] &&                                                                \
     (!retired[f] || !has_event[f] || passed[STREAM(f)] >= event_of[f]))
#define HAS_SOURCE(q)                                                                              \
    (created < PAGES || kept != NONE || READY((q ^ 1)) || READY((2 * (1 - STREAM(q)))) ||          \
     READY((2 * (1 - STREAM(q)) + 1)))
/* The code may mark a stream that has a mark, the model not. */
#define NEEDS_SECOND(f)                                                                            \
    (READY(f) && mark_of[STREAM(f)] != NONE && passed[STREAM(f)] < mark_of[STREAM(f)] &&            \
     (waits[f] || epoch_of[f] > mark_epoch[STREAM(f)]))
#define CAN_BE_SERVED(q)                                                                           \
    (len(queue[0]) < QUEUE - 5 && len(queue[1]) < QUEUE - 5 &&                                     \
     (READY(q) || (FILLABLE(q) && HAS_SOURCE(q))) && !NEEDS_SECOND(0) && !NEEDS_SECOND(1) &&        \
     !NEEDS_SECOND(2) && !NEEDS_SECOND(3))

inline mark_both()
{
    mark_newer(0);
    mark_newer(1);
    settle();
    look_mark(0);
    look_mark(1)
}

inline trace_request(q)
{
    if
    :: CAN_BE_SERVED(q) ->
        if
        :: MAY_COMPLETE(0) || MAY_COMPLETE(1) || MAY_COMPLETE(2) || MAY_COMPLETE(3) -> look(); mark_both()
        :: else -> look()
        fi;
        if
        :: IDLE(q) -> take_in_place(q)
        :: else -> mark_both(); trace_take(q)
        fi
    :: else
    fi;
    settle()
}

/* A request that is too large for what is left, though the device has no more: of two pages for the
 * place of a large block, while its stream has one free page, that of its small blocks, and the
 * other stream has none. */
#define WILL_KEEP(q)                                                                               \
    ((q & 1) && created == PAGES && kept == NONE && len(queue[0]) < QUEUE - 5 &&                   \
     len(queue[1]) < QUEUE - 5 && FILLABLE(q) && IDLE((q - 1)) && MAY_MOVE((q - 1)) &&             \
     !READY((2 * (1 - STREAM(q)))) && !READY((2 * (1 - STREAM(q)) + 1)) && !NEEDS_SECOND((q - 1)))

inline trace_keep(q)
{
    if
    :: WILL_KEEP(q) ->
        look();
        mark_both();
        f = q - 1;
        keep(q, f)
    :: else
    fi;
    settle()
}

/* Nothing else is free that it could have without looking at events. */
#define MAKES_ONE                                                                                  \
    (!(kept != NONE && (kept_by == 0 || kept_epoch < over[kept_by])) &&                            \
     !(MAY_MOVE(2) && IS_DONE(2)) && !(MAY_MOVE(3) && IS_DONE(3)) && len(queue[0]) < QUEUE - 5)
#define MAY_BE_QUEUED (len(queue[0]) < QUEUE - 5)
#else
#define MAKES_ONE     true
#define MAY_BE_QUEUED true
#endif

proctype Allocator()
{
    byte q, f, p;
#ifdef TRACE
    byte a, b;
#endif

    do
#ifdef TRACE
    :: blocks < CALLS -> atomic {
        select(q : 0 .. 3);
        trace_request(q);
        q = 0;
        f = 0 }
#ifndef NO_STORE
    :: blocks < CALLS -> atomic {
        select(q : 0 .. 3);
        trace_keep(q);
        q = 0;
        f = 0 }
#endif
#else
    :: blocks < CALLS -> atomic {
        select(q : 0 .. 3);
        if
        :: ROOM(STREAM(q)) ->
            if
            :: IDLE(q) -> take_in_place(q)
            :: CAN_BE_FILLED(q) ->
                select(f : 0 .. 4);
                if
                :: MAY_FOLLOW(q, f) -> take_same_stream(q, f)
                :: MAY_GET_DONE(q, f) -> take_done(q, f)
                :: MAY_WAIT(q, f) -> take_in_order(q, f)
                :: MAY_MAKE(q) -> take_made(q)
#ifndef NO_STORE
                :: MAY_GET_KEPT(q) -> take_kept(q)
                :: MAY_WAIT_FOR_KEPT(q) -> take_kept_in_order(q)
                :: MAY_KEEP(q, f) -> keep(q, f)
#endif
                :: else
                fi
            :: else
            fi
        :: else
        fi;
        q = 0;
        f = 0 }
#endif
#ifndef NO_PRIVATE
    :: atomic { MAY_CAPTURE && MAKES_ONE -> capture() }
    :: atomic { MAY_REPLAY && MAY_BE_QUEUED -> replay() }
#endif
#ifndef NO_SHARING
    :: atomic { /* a use on the other stream */
        select(q : 0 .. 3);
        if
        /* once the stream's own uses have run, as a program orders it */
        :: live[q] && !shared[q] && ROOM(1 - STREAM(q)) && len(queue[STREAM(q)]) == 0 ->
            shared[q] = true;
            queue[1 - STREAM(q)] ! use, q, block[q];
            SAY(used, q)
        :: else
        fi;
        q = 0 }
#endif
    :: atomic { /* a free */
        select(q : 0 .. 4);
        if
#ifndef NO_SHARING
        :: live[q] && shared[q] && ROOM(1 - STREAM(q)) ->
            record(1 - STREAM(q));
            live[q] = false;
#ifdef FREE_IN_USE
            epoch_of[q] = epoch;
#else
            waits[q] = true;
            waits_for[q] = recorded[1 - STREAM(q)];
#endif
            SAY(freed, q)
#ifndef TRACE /* there a request looks */
        :: MAY_COMPLETE(q) -> complete(q)
#endif
#endif
        :: live[q] && !shared[q] ->
            live[q] = false;
            epoch_of[q] = epoch;
            SAY(freed, q)
        :: else
        fi;
#ifdef TRACE
        settle();
#endif
        q = 0 }
#ifndef TRACE
    :: atomic { /* a mark */
        select(q : 0 .. 1);
        if
        :: marks < MARKS && MAY_MARK(q) -> marks++; mark(q)
        :: MARK_IS_DONE(q) -> end_mark(q)
        :: else
        fi;
        q = 0 }
    :: atomic { /* an old address */
        select(q : 0 .. 3);
        if
        :: MAY_UNMAP(q) -> unmap(q)
        :: else
        fi;
        q = 0 }
#endif
    od
}

proctype Stream(byte s)
{
    byte a, b;

end:
    do
    :: atomic { queue[s] ? [use] ->
        run_use(s);
#ifdef TRACE
        settle();
#endif
        a = 0;
        b = 0 }
#ifdef SLOW
    :: skip
    :: skip
    :: skip
    :: skip
    :: skip
#endif
#ifndef TRACE
    :: atomic { queue[s] ? [event] ->
        run_event(s);
        a = 0;
        b = 0 }
    :: atomic { queue[s] ? [wait] -> queue[s] ? <wait, a, b>;
        if
        :: passed[a] >= b -> queue[s] ? wait, a, b
        :: else
        fi;
        a = 0;
        b = 0 }
#endif
    od
}

init {
    atomic {
        run Allocator();
        run Stream(0);
        run Stream(1)
    }
}
