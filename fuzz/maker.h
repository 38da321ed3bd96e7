/* SPDX-License-Identifier: MIT */
/*
 * What the generators of documents share: plausible texts, sizes and addresses, which fit each
 * other often enough to get past the first check, and a spoon of everything that a reader must not
 * take on trust: wrong types, numbers at every edge, missing, repeated and misspelt keys,
 * containers that stand in several places or in themselves.
 */
#ifndef FUZZ_MAKER_H
#define FUZZ_MAKER_H

#include "dice.h"
#include "value.h"

enum {
    MAKER_RECENT = 16
};

struct maker {
    struct dice dice;
    struct value_pool pool;
    struct value *recent[MAKER_RECENT]; /* containers that may stand elsewhere again */
    unsigned recent_count;
};

void maker_init(struct maker *maker, const uint8_t *bytes, size_t size);

struct value *make_container(struct maker *maker, enum value_kind kind, size_t capacity);
struct value *make_text(struct maker *maker);
struct value *make_word(struct maker *maker, const char *const *words, unsigned count);
struct value *make_size(struct maker *maker);
struct value *make_address(struct maker *maker);
struct value *make_time(struct maker *maker);
struct value *make_small(struct maker *maker, unsigned count); /* 0 to count - 1 */
struct value *make_bool(struct maker *maker);
struct value *make_pair(struct maker *maker); /* the id of a pool */

/* The item as a member of the dict, or something else in its place. */
void make_field(struct maker *maker, struct value *dict, const char *key, struct value *item);

/* The same for the item of a list. */
void make_item(struct maker *maker, struct value *list, struct value *item);

/* One document from the bytes; `kind` chooses the form. */
enum document_kind {
    DOCUMENT_SNAPSHOT,
    DOCUMENT_TRACK,
    DOCUMENT_DECISIONS,
    DOCUMENT_PROFILE,
    DOCUMENT_RMM,
    DOCUMENT_KINDS
};

void make_snapshot(struct maker *maker, struct document *document);
void make_track(struct maker *maker, struct document *document);
void make_decisions(struct maker *maker, struct document *document);
void make_profile(struct maker *maker, struct document *document);
void make_rmm(struct maker *maker, struct document *document);

#endif
