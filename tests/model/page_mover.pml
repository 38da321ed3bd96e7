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
 * The wrong variants: -DUNMAP_AT_ONCE, -DTAKE_BUSY, -DNO_WAIT, -DKEEP_FOR_ALL, -DSAME_EPOCH,
 * -DTAKE_PRIVATE, -DFREE_IN_USE.
 */
#ifndef CALLS
#define CALLS 5 /* allocations */
#endif
#ifndef MARKS
#define MARKS 2
#endif
#define PAGES   3
#define PLACES  5
#define PRIVATE 4
#define NONE    15
#define QUEUE   2
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
byte done[2];     /* epochs that ended before this one are done: 0 = none */
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
#define IS_DONE(f) (epoch_of[f] < done[STREAM(f)])
#endif
#define CAN_BE_FILLED(q) (page[q] == NONE && !retired[q] && !live[q])

proctype Allocator()
{
    byte q, f, p;

    do
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
                :: kept != NONE && (kept_by == STREAM(q) || kept_epoch < done[kept_by]) ->
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
            queue[1 - STREAM(q)] ! use, q, block[q]
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
            waits_for[q] = recorded[1 - STREAM(q)]
#endif
        :: waits[q] && passed[1 - STREAM(q)] >= waits_for[q] ->
            printf("free completed\n");
            waits[q] = false;
            epoch_of[q] = epoch
#endif
        :: live[q] && !shared[q] ->
            printf("freed\n");
            live[q] = false;
            epoch_of[q] = epoch
        :: else
        fi;
        q = 0 }
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
            done[q] = mark_epoch[q] + 1
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
        a = 0;
        b = 0 }
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
    od
}

init {
    atomic {
        run Allocator();
        run Stream(0);
        run Stream(1)
    }
}
