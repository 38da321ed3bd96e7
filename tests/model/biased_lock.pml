/* SPDX-License-Identifier: MIT */
/*
 * The biased lock (src/base/biased_lock.h). README.md says what is left out and what is shown.
 *
 * Memory is weak where the lock relies on it: what a thread stores goes into a buffer of its own
 * and becomes visible to others later, in order. An exchange does not empty the buffer; only the
 * barrier does, for one thread after the other, in any order.
 *
 * With -DVISIT: a thread that only visits (tn_biased_lock_visit) takes the place of the last one.
 * With -DLIVE: who has the word enters, however often others come and go.
 *
 * What is printed is what replay_biased_lock.c does with the program: the thread, what it does, and
 * two numbers. With -DTRACE each thread comes ROUNDS times, the first one more often than the others,
 * and stays for a while.
 */
#define THREADS 3
#define SEATS 2 /* one thread gets none */
#define DEPTH 2 /* stores that a buffer holds: a full one delays the thread */
#define NONE 7

#define LEANS 0
#define TAKEN 1
#define INSIDE(s) (2 + (s))

#define SELF (me + 1)
#define SAY(how, a, b) printf(how, me, a, b)

#ifdef TRACE
#define ROUNDS (me == 0 -> 90 : 20)
#define COMES  (rounds < ROUNDS)
#define GOES   (rounds == ROUNDS)
#define ROUND  rounds++;
#define TELL(how, a, b) printf(how, me, a, b); /* a step of its own, in traces alone */
#define STAYS                                                                                      \
    do                                                                                             \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true                                                                                        \
    :: true -> break                                                                               \
    od;
#define STAYS_AWAY                                                                                 \
    do                                                                                             \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: me != 0                                                                                     \
    :: true -> break                                                                               \
    od;
#else
#define COMES true
#define GOES  true
#define ROUND
#define TELL(how, a, b)
#define STAYS
#define STAYS_AWAY
#endif

/* What is in memory. */
byte leans = NONE;
bit taken;
bit inside[SEATS];
byte sitting[SEATS]; /* thread + 1; 0: free. Only compared with oneself, so never too old */

/* Guarded by the lock. */
byte seat = NONE;
bool unbiased;

/* Ghosts. */
byte holders;
bool has_word; /* thread 0, in acquire, LIVE only */
bool entered;

chan buffer[THREADS] = [DEPTH] of { byte, byte };

/* The oldest store of a thread becomes visible. */
inline make_visible(thread)
{
    buffer[thread] ? location, value;
    if
    :: location == LEANS -> leans = value
    :: location == TAKEN -> taken = value
    :: location >= INSIDE(0) -> inside[location - INSIDE(0)] = value
    fi;
    location = 0;
    value = 0
}

inline drain(thread)
{
    do
    :: nempty(buffer[thread]) -> make_visible(thread)
    :: empty(buffer[thread]) -> break
    od
}

proctype Memory(byte thread)
{
    byte location;
    byte value;

end:
    do
    :: atomic { nempty(buffer[thread]) -> printf("%d visible 0 0\n", thread); make_visible(thread) }
    od
}

inline put(location, value)
{
    atomic { buffer[me] ! location, value; SAY("%d store %d %d\n", location, value) }
}

/* A thread sees its own stores at once. Of those to `leans` at most one waits: the word, whose store
 * follows it, must have become free before the next. */
#define LEANS_SEEN                                                                                 \
    (buffer[me] ?? [LEANS, 0] -> 0 : (buffer[me] ?? [LEANS, 1] -> 1 : leans))

/* tn_os_barrier: every thread passes a barrier, at a time of its own. */
inline barrier()
{
    d_step { drain(me) }
#ifndef LOCAL_BARRIER
    left = ((1 << THREADS) - 1) & ~(1 << me);
    do
    :: left & 1 -> d_step { drain(0); left = left & ~1; SAY("%d drain %d %d\n", 0, 0) }
    :: left & 2 -> d_step { drain(1); left = left & ~2; SAY("%d drain %d %d\n", 1, 0) }
    :: left & 4 -> d_step { drain(2); left = left & ~4; SAY("%d drain %d %d\n", 2, 0) }
    :: left == 0 -> break
    od;
    TELL("%d passed %d %d\n", 0, 0)
#endif
}

/* tn_biased_lock_enter */
inline enter()
{
    got = false;
    atomic { leant = LEANS_SEEN; SAY("%d leans %d %d\n", leant, 0) }
    if
    :: leant == NONE || sitting[leant] != SELF -> skip
    :: leant != NONE && sitting[leant] == SELF ->
        put(INSIDE(leant), 1);
#ifdef NO_RECHECK
        got = true /* wrong */
#else
        if
        :: atomic { LEANS_SEEN == leant -> SAY("%d leans %d %d\n", leant, 0) }
            got = true
        :: atomic { LEANS_SEEN != leant -> SAY("%d leans %d %d\n", LEANS_SEEN, 0) }
            put(INSIDE(leant), 0)
        fi
#endif
    fi;
    leant = NONE
}

/* lock_end_bias, if there is one; the word is held. */
inline end_bias()
{
    if
    :: atomic { leans != NONE -> SAY("%d biased %d %d\n", leans, 0) }
        d_step { drain(me); leans = NONE; SAY("%d end %d %d\n", 0, 0) }
        barrier();
        ended = true
    :: atomic { leans == NONE -> SAY("%d biased %d %d\n", NONE, 0) }
        ended = false
    fi
}

/* lock_owner_is_inside: the last that a thread stored in its own seat is 0. */
#define OWNER_IS_INSIDE (seat != NONE && sitting[seat] != SELF && inside[seat])

#ifdef LIVE
#define NOTE_WORD if :: me == 0 -> has_word = true :: me != 0 -> skip fi
#define NOTE_ENTERED if :: me == 0 -> has_word = false :: me != 0 -> skip fi
#else
#define NOTE_WORD skip
#define NOTE_ENTERED skip
#endif

/* tn_biased_lock_acquire_slow: the loops that poll are waits for what they poll. */
inline acquire_slow()
{
    atomic { taken == 0 -> taken = 1; SAY("%d word %d %d\n", 0, 0); NOTE_WORD }
#ifdef WAIT_FIRST
    !OWNER_IS_INSIDE;
#endif
    end_bias();
#ifdef NO_WAIT
    /* only who ended the bias waits */
    if
    :: ended -> !OWNER_IS_INSIDE
    :: !ended -> skip
    fi;
#else
    atomic { !OWNER_IS_INSIDE -> SAY("%d owner %d %d\n", 0, seat) }
#endif
    atomic { unbiased = true; NOTE_ENTERED }
}

/* tn_biased_lock_try, which does not wait */
inline try()
{
    got = false;
    if
    :: atomic { taken == 0 -> taken = 1; SAY("%d word %d %d\n", 0, 0) }
        end_bias();
        if
        :: atomic { OWNER_IS_INSIDE -> SAY("%d owner %d %d\n", 1, seat) }
#ifndef TRY_KEEPS_WORD
            put(TAKEN, 0)
#else
            skip
#endif
        :: atomic { !OWNER_IS_INSIDE -> SAY("%d owner %d %d\n", 0, seat) }
            atomic { unbiased = true; got = true }
        fi
    :: atomic { taken != 0 -> SAY("%d busy %d %d\n", 0, 0) }
    fi
}

/* tn_biased_lock_visit: gives up at any look, and then all is as before. */
inline visit()
{
    got = false;
    atomic { taken == 0 -> taken = 1; SAY("%d word %d %d\n", 0, 0) }
    host = leans; /* nobody else stores to it now */
    end_bias();
    if
    :: atomic { OWNER_IS_INSIDE -> SAY("%d owner %d %d\n", 1, seat) }
        put(LEANS, host);
        put(TAKEN, 0)
    :: atomic { !OWNER_IS_INSIDE -> SAY("%d owner %d %d\n", 0, seat) }
        atomic { unbiased = true; got = true }
    fi
}

/* visit_end */
inline visit_end()
{
#ifdef BIAS_FIRST
    if
    :: host != NONE -> buffer[me] ! LEANS, host; unbiased = false /* wrong */
    :: host == NONE -> unbiased = false
    fi;
#else
    unbiased = false;
    if
    :: host != NONE -> TELL("%d leave %d %d\n", 1, host) put(LEANS, host)
    :: true -> TELL("%d leave %d %d\n", 0, NONE) skip /* somebody waits */
    fi;
#endif
    put(TAKEN, 0);
    host = NONE
}

/* lock_seat_of */
inline take_seat()
{
    if
#ifdef ONE_SEAT
    :: true -> atomic { sitting[0] = SELF; mine = 0 }
#else
    :: mine != NONE -> skip
    :: mine == NONE && sitting[0] == 0 -> atomic { sitting[0] = SELF; mine = 0 }
    :: mine == NONE && sitting[0] != 0 && sitting[1] == 0 ->
        atomic { sitting[1] = SELF; mine = 1 }
    :: mine == NONE && sitting[0] != 0 && sitting[1] != 0 -> skip
#endif
    fi
}

/* tn_biased_lock_leave. When the lock leans depends on counts: here it may at every release. */
inline leave()
{
    if
    :: !unbiased -> TELL("%d leave %d %d\n", 0, seat) put(INSIDE(seat), 0)
    :: unbiased ->
        if
        :: true ->
            take_seat();
            TELL("%d leave %d %d\n", 1, mine)
            if
            :: mine != NONE -> seat = mine; put(LEANS, mine)
            :: mine == NONE -> skip
            fi
        :: true -> TELL("%d leave %d %d\n", 0, NONE) skip
        fi;
        unbiased = false;
        put(TAKEN, 0)
    fi
}

proctype Thread(byte me)
{
    byte mine = NONE; /* seat */
    byte leant = NONE;
    byte location;
    byte value;
    byte left;
    bool got;
    bool ended;
#ifdef TRACE
    byte rounds;
#endif

    do
    :: COMES ->
        STAYS_AWAY
        if
        :: true ->
            TELL("%d acquire %d %d\n", 0, 0)
            enter();
            if
            :: got -> skip
            :: !got -> acquire_slow()
            fi;
            got = true
        :: true -> TELL("%d try %d %d\n", 0, 0) try()
        fi;
        if
        :: got ->
            TELL("%d has %d %d\n", 0, 0)
            STAYS
            holders++;
            assert(holders == 1);
            holders--;
            leave()
        :: !got -> TELL("%d fails %d %d\n", 0, 0) skip
        fi;
        got = false;
        ROUND
        ended = false
    :: GOES -> break /* so that one who waits for ever is found: the others may stop */
    od
}

#ifdef VISIT
proctype Visitor(byte me)
{
    byte location;
    byte value;
    byte left;
    byte host = NONE;
    bool got;
    bool ended;
#ifdef TRACE
    byte rounds;
#endif

    do
    :: COMES ->
        STAYS_AWAY
        TELL("%d visit %d %d\n", 0, 0)
        visit();
        if
        :: got ->
            TELL("%d has %d %d\n", 0, 0)
            STAYS
            holders++;
            assert(holders == 1);
            holders--;
            visit_end()
        :: !got -> TELL("%d fails %d %d\n", 0, 0) host = NONE
        fi;
        got = false;
        ROUND
        ended = false
    :: GOES -> break
    od
}
#define LAST Visitor
#else
#define LAST Thread
#endif

init
{
    atomic {
        run Memory(0);
        run Memory(1);
        run Memory(2);
        run Thread(0);
        run Thread(1);
        run LAST(2)
    }
}

#ifdef LIVE
ltl enters { [] (has_word -> <> !has_word) }
#endif
