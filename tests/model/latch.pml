/* SPDX-License-Identifier: MIT */
/*
 * The sequence lock of the page of counters (src/alloc/watch/latch.h): one writer, readers that
 * wait for nobody. README.md says what is left out and what is shown.
 *
 * Memory is weak on both sides. The writer's stores go into a buffer and become visible in any
 * order; a release fence is the point before which all earlier ones must be, a store with release
 * order comes after all others. A reader's loads of words may be done in any order between its two
 * fences: that order is drawn.
 *
 * What is printed is what replay_latch.c does with the program. With -DTRACE the reader tries more
 * often, and the writer is stopped later.
 */
#ifdef TRACE
#define TRIES 20
#else
#define TRIES 2
#endif
#define PUBLICATIONS 5
#define WORDS 2
#define NONE 0

/* Places in memory: the current generation, and of each copy its generation and its words. */
#define CURRENT 0
#define GENERATION(c) (1 + (c) * (WORDS + 1))
#define WORD(c, w) (2 + (c) * (WORDS + 1) + (w))
#define PLACES (1 + 2 * (WORDS + 1))

byte memory[PLACES];

/* What the writer stored and nobody sees yet, and after how many fences. */
byte stored[PLACES];
bool waits[PLACES];
byte after[PLACES];
byte fences;

bool stopped;
byte published; /* ghost: what the writer has made current for good */

/* Stores to one place keep their order. */
inline store(place, value)
{
    atomic {
        !waits[place] ->
        stored[place] = value;
        waits[place] = true;
        after[place] = fences;
        printf("writer store %d %d\n", place, value)
    }
}

inline fence()
{
    atomic { fences++; printf("writer fence 0 0\n") }
}

#define LATER(p, q) (!waits[q] || after[q] >= after[p])
#define MAY_BE_SEEN(p)                                                                             \
    (waits[p] && LATER(p, 0) && LATER(p, 1) && LATER(p, 2) && LATER(p, 3) && LATER(p, 4) &&        \
     LATER(p, 5) && LATER(p, 6))

inline become_visible(place)
{
    atomic {
        MAY_BE_SEEN(place) ->
        memory[place] = stored[place];
        stored[place] = 0;
        after[place] = 0;
        waits[place] = false;
        published = (place == CURRENT -> memory[CURRENT] : published);
        printf("memory visible %d %d\n", place, memory[place])
    }
}

proctype Memory()
{
end:
    do
    :: become_visible(0)
    :: become_visible(1)
    :: become_visible(2)
    :: become_visible(3)
    :: become_visible(4)
    :: become_visible(5)
    :: become_visible(6)
    od
}

proctype Writer()
{
    byte next = 1;
    byte copy;

    {
        do
        :: next <= PUBLICATIONS ->
#ifdef ONE_COPY
            copy = 0; /* wrong: what a stopped writer leaves cannot be read */
#else
            copy = next % 2;
#endif
#ifndef GENERATION_LAST
            store(GENERATION(copy), next);
#endif
#ifndef NO_WRITE_FENCE
            fence();
#endif
#ifdef CURRENT_FIRST
            store(CURRENT, next); /* wrong */
#endif
            store(WORD(copy, 0), next);
            store(WORD(copy, 1), next);
#ifdef GENERATION_LAST
            store(GENERATION(copy), next); /* wrong */
#endif
            fence(); /* of the store with release order */
#ifndef CURRENT_FIRST
            store(CURRENT, next);
#endif
            next++
        :: next > PUBLICATIONS -> break
        od
    } unless { stopped }
}

/* Stops the writer wherever it is; what it stored becomes visible all the same. */
proctype Killer()
{
#ifdef TRACE
    byte left = 10;

    do
    :: left > 0
    :: left > 0
    :: left > 0
    :: left > 0 -> left--
    :: left == 0 -> break
    od;
#endif
    atomic { stopped = true; printf("writer stop 0 0\n") }
}

#define LOAD(who, to, place)                                                                       \
    atomic { to = memory[place]; printf(who, place, to) }
#define READER "reader load %d %d\n"
#define LATE   "late load %d %d\n"


proctype Reader()
{
    byte current;
    byte copy;
    byte word[WORDS];
    byte generation;
    byte newest;
    byte tries;

    do
#ifdef TRACE
    :: true
    :: true
#endif
    :: tries < TRIES ->
        tries++;
        newest = published;
        LOAD(READER, current, CURRENT);
        if
        :: current == NONE -> printf("reader empty 0 0\n"); goto again
        :: current != NONE -> skip
        fi;
#ifdef ONE_COPY
        copy = 0;
#else
        copy = current % 2;
#endif
        if /* in any order */
        :: true -> LOAD(READER, word[0], WORD(copy, 0)); LOAD(READER, word[1], WORD(copy, 1))
        :: true -> LOAD(READER, word[1], WORD(copy, 1)); LOAD(READER, word[0], WORD(copy, 0))
        fi;
#ifndef NO_RECHECK
        LOAD(READER, generation, GENERATION(copy));
        if
        :: generation != current -> printf("reader changed 0 0\n"); goto again
        :: generation == current -> printf("reader read 0 0\n")
        fi;
#endif
        assert(word[0] == word[1]);  /* of one record */
        assert(word[0] == current);  /* of the one that was current */
        assert(current >= newest);   /* never older than what was current before */
again:
        current = 0;
        copy = 0;
        word[0] = 0;
        word[1] = 0;
        generation = 0;
        newest = 0
    :: tries == TRIES -> break
    od
}

/* A reader that comes when the writer has stopped, wherever that was, gets a record. */
proctype Late()
{
    byte current;
    byte copy;

    atomic { timeout -> current = memory[CURRENT]; printf(LATE, CURRENT, current) };
    if
    :: current != NONE ->
#ifdef ONE_COPY
        copy = 0;
#else
        copy = current % 2;
#endif
        printf(LATE, WORD(copy, 0), memory[WORD(copy, 0)]);
        printf(LATE, WORD(copy, 1), memory[WORD(copy, 1)]);
        printf(LATE, GENERATION(copy), memory[GENERATION(copy)]);
        assert(memory[GENERATION(copy)] == current && memory[WORD(copy, 0)] == current &&
               memory[WORD(copy, 1)] == current);
        printf("late read 0 0\n")
    :: current == NONE -> printf("late empty 0 0\n")
    fi
}

init
{
    atomic {
        run Memory();
        run Writer();
        run Reader();
        run Late();
        run Killer()
    }
}
