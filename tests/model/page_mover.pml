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
 * -DTRACE prints what is done and where pages are then, for replay_pages.c: of what the allocator may
 * do it does what the code does, as trace_request says, and events and waits take no time. With
 * -DNO_STORE -DNO_PRIVATE, -DQUEUE=9 and more CALLS.
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
#define REPLAYS 2

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

#ifdef TRACE
mtype = { in_place, same_stream, done_with, made, in_order, used, freed, ran };

/* What the device does at once: events, and waits for events that have passed. */
inline settle_stream(s)
{
    do
    :: queue[s] ? [event] -> queue[s] ? event, a, b; passed[s] = a
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

/* The action, its place or stream, and the page of each place, NONE where it has none. */
#define SAY(action, number)                                                                        \
    printf("trace %e %d %d %d %d %d\n", action, number, page[0], page[1], page[2], page[3])

/* What a request looks at first: frees that have completed, marks that are done, old addresses. */
inline look_place(f)
{
    if
    :: waits[f] && passed[1 - STREAM(f)] >= waits_for[f] -> waits[f] = false; epoch_of[f] = epoch
    :: else
    fi;
    if
    :: retired[f] && (!has_event[f] || passed[STREAM(f)] >= event_of[f]) ->
        retired[f] = false;
        at_place[f] = NONE
    :: else
    fi
}

inline look_mark(s)
{
    if
    :: mark_of[s] != NONE && passed[s] >= mark_of[s] ->
        mark_of[s] = NONE;
        over[s] = mark_epoch[s] + 1
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

inline mark(s)
{
    if
    :: UNMARKED(2 * s) || UNMARKED(2 * s + 1) ->
        record(s);
        mark_of[s] = recorded[s];
        mark_epoch[s] = epoch;
        epoch++
    :: else
    fi
}

/* Place q gets a page from where the code gets it. */
inline trace_take(q)
{
    if
    :: MAY_MOVE((q ^ 1)) ->
        f = q ^ 1;
        record(STREAM(f));
        move(f, q, true, recorded[STREAM(f)]);
        SAY(same_stream, q)
    :: else ->
        f = 2 * (1 - STREAM(q)) + 1; /* large blocks first */
        if
        :: MAY_MOVE(f) && IS_DONE(f) -> skip
        :: else -> f = f - 1
        fi;
        if
        :: MAY_MOVE(f) && IS_DONE(f) -> move(f, q, false, 0); SAY(done_with, q)
        :: else ->
            if
            :: created < PAGES -> created++; give(q, created - 1); SAY(made, q)
            :: else ->
                f = 2 * (1 - STREAM(q)) + 1;
                if
                :: MAY_MOVE(f) -> skip
                :: else -> f = f - 1
                fi;
                record(STREAM(f));
                queue[STREAM(q)] ! wait, STREAM(f), recorded[STREAM(f)];
                move(f, q, true, recorded[STREAM(f)]);
                SAY(in_order, q)
            fi
        fi
    fi
}

/* What will be when a request has looked. */
#define COMPLETES(f) (waits[f] && passed[1 - STREAM(f)] >= waits_for[f])
#define READY(f)     (IDLE(f) || COMPLETES(f))
#define FILLABLE(f)                                                                                \
    (page[f] == NONE && !live[f] &&                                                                \
     (!retired[f] || !has_event[f] || passed[STREAM(f)] >= event_of[f]))
#define HAS_SOURCE(q)                                                                              \
    (created < PAGES || READY((q ^ 1)) || READY((2 * (1 - STREAM(q)))) ||                           \
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
    mark(0);
    mark(1);
    settle();
    look_mark(0);
    look_mark(1)
}

inline trace_request(q)
{
    if
    :: CAN_BE_SERVED(q) ->
        if
        :: COMPLETES(0) || COMPLETES(1) || COMPLETES(2) || COMPLETES(3) -> look(); mark_both()
        :: else -> look()
        fi;
        if
        :: IDLE(q) -> give(q, page[q]); SAY(in_place, q)
        :: else -> mark_both(); trace_take(q)
        fi
    :: else
    fi;
    settle()
}
#else
#define SAY(action, number) skip
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
#else
    :: blocks < CALLS -> atomic {
        select(q : 0 .. 3);
        if
        :: ROOM(STREAM(q)) ->
            if
            /* in place: the stream's own order */
            :: IDLE(q) -> printf("in place\n"); give(q, page[q])
            :: CAN_BE_FILLED(q) ->
                select(f : 0 .. 4);
                if
                :: f != q && MAY_MOVE(f) && STREAM(f) == STREAM(q) &&
                   len(queue[STREAM(q)]) < QUEUE - 1 ->
                    printf("same stream\n");
                    record(STREAM(f));
                    move(f, q, true, recorded[STREAM(f)])
                :: MAY_MOVE(f) && STREAM(f) != STREAM(q) && IS_DONE(f) ->
                    printf("done\n");
                    move(f, q, false, 0)
                :: MAY_MOVE(f) && STREAM(f) != STREAM(q) && ROOM(STREAM(f)) &&
                   len(queue[STREAM(q)]) < QUEUE - 1 ->
                    printf("ordered\n");
                    record(STREAM(f));
#ifndef NO_WAIT
                    queue[STREAM(q)] ! wait, STREAM(f), recorded[STREAM(f)];
#endif
                    move(f, q, true, recorded[STREAM(f)])
                :: created < PAGES ->
                    printf("created\n");
                    created++;
                    give(q, created - 1)
#ifndef NO_STORE
#ifdef KEEP_FOR_ALL
                :: kept != NONE ->
#else
                :: kept != NONE && (kept_by == STREAM(q) || kept_epoch < over[kept_by]) ->
#endif
                    printf("kept\n");
                    p = kept;
                    kept = NONE;
                    give(q, p);
                    p = 0
                /* a request that fails: what was taken for it is kept */
                :: kept == NONE && f != q && MAY_MOVE(f) && STREAM(f) == STREAM(q) &&
                   ROOM(STREAM(f)) ->
                    printf("keeps\n");
                    record(STREAM(f));
                    kept = page[f];
                    kept_by = STREAM(f);
                    kept_epoch = epoch;
                    page[f] = NONE;
                    retired[f] = true;
                    has_event[f] = true;
                    event_of[f] = recorded[STREAM(f)]
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
    :: blocks < CALLS && page[PRIVATE] == NONE && created < PAGES && ROOM(0) -> atomic {
        printf("captured\n");
        created++;
        give(PRIVATE, created - 1) }
    :: atomic { page[PRIVATE] != NONE && ROOM(0) && replays < REPLAYS ->
        printf("replayed\n");
        replays++;
        queue[0] ! use, PRIVATE, block[PRIVATE] }
#endif
#ifndef NO_SHARING
    :: atomic { /* a use on the other stream */
        select(q : 0 .. 3);
        if
        /* once the stream's own uses have run, as a program orders it */
        :: live[q] && !shared[q] && ROOM(1 - STREAM(q)) && len(queue[STREAM(q)]) == 0 ->
            printf("shared\n");
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
            printf("freed, waits\n");
            record(1 - STREAM(q));
            live[q] = false;
#ifdef FREE_IN_USE
            epoch_of[q] = epoch;
#else
            waits[q] = true;
            waits_for[q] = recorded[1 - STREAM(q)];
            SAY(freed, q)
#endif
#ifndef TRACE /* there a request looks */
        :: waits[q] && passed[1 - STREAM(q)] >= waits_for[q] ->
            printf("free completed\n");
            waits[q] = false;
            epoch_of[q] = epoch
#endif
#endif
        :: live[q] && !shared[q] ->
            printf("freed\n");
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
        :: marks < MARKS && mark_of[q] == NONE && ROOM(q) ->
            printf("marked\n");
            marks++;
            record(q);
            mark_of[q] = recorded[q];
            mark_epoch[q] = epoch;
#ifndef SAME_EPOCH
            epoch++
#endif
        :: mark_of[q] != NONE && passed[q] >= mark_of[q] ->
            printf("mark done\n");
            mark_of[q] = NONE;
            over[q] = mark_epoch[q] + 1
        :: else
        fi;
        q = 0 }
    :: atomic { /* an old address */
        select(q : 0 .. 3);
        if
        :: retired[q] && (!has_event[q] || passed[STREAM(q)] >= event_of[q]) ->
            printf("unmapped\n");
            retired[q] = false;
            at_place[q] = NONE
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
    :: atomic { queue[s] ? [use] -> queue[s] ? use, a, b;
        assert(at_place[a] == owner_page[b]); /* mapped, to the block's page */
        assert(touched[owner_page[b]] <= b);  /* no later block was there before */
        touched[owner_page[b]] = b;
        SAY(ran, s);
#ifdef TRACE
        settle();
#endif
        a = 0;
        b = 0 }
#ifdef TRACE
    :: skip /* a device that is behind */
    :: skip
    :: skip
    :: skip
    :: skip
#else
    :: atomic { queue[s] ? [event] -> queue[s] ? event, a, b;
        passed[s] = a;
        a = 0 }
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
