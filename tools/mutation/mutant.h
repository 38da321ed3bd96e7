/* SPDX-License-Identifier: MIT */
/*
 * What instrumented sources call: tn_m(ID) is true if the environment variable TN_MUTANT names that
 * mutant. With TN_MUTANT_SEEN, the name of a file of a byte for each mutant, every one that is
 * reached is marked there, also by processes that crash or are forked.
 *
 * Included before everything else, so it includes nothing itself: a source may still choose what
 * the system's headers declare.
 */
#ifndef TN_MUTATION_MUTANT_H
#define TN_MUTATION_MUTANT_H

#if defined(__STDC_VERSION__) && defined(__linux__)

char *getenv(const char *name);
long strtol(const char *text, char **end, int base);
int open(const char *path, int flags, ...);
int close(int file);
long lseek(int file, long offset, int whence);
void *mmap(void *address, unsigned long size, int protection, int flags, int file, long offset);

/* One copy in each program and library. */
__attribute__((weak, visibility("hidden"))) int tn_mutant;
__attribute__((weak, visibility("hidden"))) volatile unsigned char *tn_mutants_seen;

__attribute__((weak, visibility("hidden"), constructor)) void tn_mutant_start(void)
{
    const char *number = getenv("TN_MUTANT");
    const char *seen = getenv("TN_MUTANT_SEEN");

    if (number) {
        tn_mutant = (int)strtol(number, (char **)0, 10);
    }
    if (seen && !tn_mutants_seen) {
        const int file = open(seen, 2); /* to read and write */
        const long size = file < 0 ? 0 : lseek(file, 0, 2);

        if (size > 0) {
            void *map = mmap((void *)0, (unsigned long)size, 3, 1, file, 0); /* shared */

            tn_mutants_seen = map == (void *)-1 ? (unsigned char *)0 : (unsigned char *)map;
        }
        if (file >= 0) {
            close(file);
        }
    }
}

static inline _Bool tn_m(int id)
{
    if (__builtin_expect(tn_mutants_seen != (unsigned char *)0, 0)) {
        tn_mutants_seen[id] = 1;
    }
    return __builtin_expect(tn_mutant == id, 0);
}

#endif
#endif
