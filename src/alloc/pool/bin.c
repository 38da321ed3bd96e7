/* SPDX-License-Identifier: MIT */
#include "alloc/pool/bin.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <string.h>

enum {
    BIN_FIRST_CAPACITY = 8,
    DIRECTORY_FIRST_CAPACITY = 8
};

/* Entries of one leaf, largest first. In a directory every leaf has room for TN_LEAF_MAX. */
struct bin_leaf {
    struct tn_bin_entry *entries;
    uint32_t count;
};

/* Leaves in the same order: every entry of a leaf is larger than all of the next. None is empty. */
struct tn_bin_directory {
    uint32_t count;
    uint32_t capacity;
    struct bin_leaf *leaves;
};

static const size_t leaf_bytes = TN_LEAF_MAX * sizeof(struct tn_bin_entry);

static bool bin_is_near(const struct tn_bin *bin)
{
    return bin->capacity == 0;
}

static bool bin_has_directory(const struct tn_bin *bin)
{
    return bin->capacity == TN_BIN_DIRECTORY;
}

/* Of a bin without a directory. */
static const struct tn_bin_entry *bin_entries(const struct tn_bin *bin)
{
    return bin_is_near(bin) ? bin->u.near : bin->u.entries;
}

/* Whether the entry comes before (size, address) in (size, address) order. */
static bool entry_is_below(const struct tn_bin_entry *entry, uint64_t size, uint64_t address)
{
    return entry->size < size || (entry->size == size && entry->address < address);
}

/* Index of the first entry below (size, address), `count` if none: entries before it are at or
 * above. */
static uint32_t entries_first_below(const struct tn_bin_entry *entries, uint32_t count,
                                    uint64_t size, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = count;

    /* Branches are better here than selections: a guessed entry is fetched early. */
    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (entry_is_below(&entries[middle], size, address)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void entries_open(struct tn_bin_entry *entries, uint32_t count, uint32_t at,
                         struct tn_block *block)
{
    memmove(&entries[at + 1], &entries[at], (count - at) * sizeof *entries);
    entries[at] =
        (struct tn_bin_entry){.size = block->size, .address = block->address, .block = block};
}

static void entries_close(struct tn_bin_entry *entries, uint32_t count, uint32_t at)
{
    memmove(&entries[at], &entries[at + 1], (count - at - 1) * sizeof *entries);
}

/* First leaf whose smallest entry is below (size, address); the last leaf if there is none. */
static uint32_t directory_find_leaf(const struct tn_bin_directory *directory, uint64_t size,
                                    uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = directory->count - 1;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const struct bin_leaf *leaf = &directory->leaves[middle];

        if (entry_is_below(&leaf->entries[leaf->count - 1], size, address)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Gives the entries an array, or a larger one. */
static bool bin_grow_array(struct tn_bin *bin)
{
    const uint32_t wanted = bin->capacity ? bin->capacity * 2 : BIN_FIRST_CAPACITY;
    struct tn_bin_entry *entries =
        tn_host_resize(bin_is_near(bin) ? NULL : bin->u.entries, bin->capacity * sizeof *entries,
                       wanted * sizeof *entries);

    if (!entries) {
        return false;
    }
    if (bin_is_near(bin)) {
        memcpy(entries, bin->u.near, sizeof bin->u.near);
    }
    bin->u.entries = entries;
    bin->capacity = wanted;
    return true;
}

/* Makes the one full array the first leaf of a directory. */
static bool bin_make_directory(struct tn_bin *bin)
{
    struct tn_bin_directory *directory = tn_host_alloc(sizeof *directory);

    tn_assert(bin->capacity == TN_LEAF_MAX);
    if (!directory) {
        return false;
    }
    directory->leaves = tn_host_alloc(DIRECTORY_FIRST_CAPACITY * sizeof *directory->leaves);
    if (!directory->leaves) {
        tn_host_free(directory, sizeof *directory);
        return false;
    }
    directory->count = 1;
    directory->capacity = DIRECTORY_FIRST_CAPACITY;
    directory->leaves[0] = (struct bin_leaf){.entries = bin->u.entries, .count = bin->count};
    bin->u.directory = directory;
    bin->capacity = TN_BIN_DIRECTORY;
    return true;
}

static bool directory_reserve(struct tn_bin_directory *directory)
{
    if (directory->count < directory->capacity) {
        return true;
    }
    const uint32_t wanted = directory->capacity * 2;
    struct bin_leaf *moved =
        tn_host_resize(directory->leaves, directory->capacity * sizeof *directory->leaves,
                       wanted * sizeof *directory->leaves);

    if (!moved) {
        return false;
    }
    directory->leaves = moved;
    directory->capacity = wanted;
    return true;
}

/* Moves the smaller half of a full leaf to a new one behind it. */
static bool directory_split(struct tn_bin_directory *directory, uint32_t at)
{
    if (!directory_reserve(directory)) {
        return false;
    }
    struct tn_bin_entry *entries = tn_host_alloc(leaf_bytes);

    if (!entries) {
        return false;
    }
    struct bin_leaf *leaf = &directory->leaves[at];
    const uint32_t kept = leaf->count / 2;
    const uint32_t moved = leaf->count - kept;

    memcpy(entries, &leaf->entries[kept], moved * sizeof *entries);
    leaf->count = kept;
    memmove(&leaf[2], &leaf[1], (directory->count - at - 1) * sizeof *leaf);
    leaf[1] = (struct bin_leaf){.entries = entries, .count = moved};
    directory->count++;
    return true;
}

static bool directory_insert(struct tn_bin_directory *directory, struct tn_block *block)
{
    uint32_t at = directory_find_leaf(directory, block->size, block->address);

    if (directory->leaves[at].count == TN_LEAF_MAX) {
        if (!directory_split(directory, at)) {
            return false;
        }
        at = directory_find_leaf(directory, block->size, block->address);
    }
    struct bin_leaf *leaf = &directory->leaves[at];
    const uint32_t index =
        entries_first_below(leaf->entries, leaf->count, block->size, block->address);

    entries_open(leaf->entries, leaf->count, index, block);
    leaf->count++;
    return true;
}

/* One or two entries, in order. */
static void near_insert(struct tn_bin *bin, struct tn_block *block)
{
    struct tn_bin_entry *near = bin->u.near;
    const struct tn_bin_entry entry = {
        .size = block->size, .address = block->address, .block = block};
    const bool smallest = bin->count > 0 && !entry_is_below(&near[0], block->size, block->address);

    near[1] = smallest ? entry : near[0];
    near[0] = smallest ? near[0] : entry;
    bin->count++;
}

/* Makes room for one more entry. */
static TN_COLD bool bin_grow(struct tn_bin *bin)
{
    return bin->capacity == TN_LEAF_MAX ? bin_make_directory(bin) : bin_grow_array(bin);
}

bool tn_bin_insert(struct tn_bin *bin, struct tn_block *block)
{
    if (tn_likely(bin_is_near(bin) && bin->count < TN_BIN_NEAR)) {
        near_insert(bin, block);
        return true;
    }
    if (tn_unlikely(bin_is_near(bin) || bin->count == bin->capacity) && !bin_grow(bin)) {
        return false;
    }
    if (tn_unlikely(bin_has_directory(bin))) {
        if (!directory_insert(bin->u.directory, block)) {
            return false;
        }
    } else {
        struct tn_bin_entry *entries = bin->u.entries;

        entries_open(entries, bin->count,
                     entries_first_below(entries, bin->count, block->size, block->address), block);
    }
    bin->count++;
    return true;
}

/* A directory of one leaf becomes that leaf again. */
static void bin_drop_directory(struct tn_bin *bin)
{
    struct tn_bin_directory *directory = bin->u.directory;

    bin->u.entries = directory->leaves[0].entries;
    bin->capacity = TN_LEAF_MAX;
    tn_host_free(directory->leaves, directory->capacity * sizeof *directory->leaves);
    tn_host_free(directory, sizeof *directory);
}

/* Index of the block's entry in entries that hold it: the last one not below it. */
static uint32_t entries_index_of(const struct tn_bin_entry *entries, uint32_t count,
                                 const struct tn_block *block)
{
    const uint32_t below = entries_first_below(entries, count, block->size, block->address);

    tn_assert(below > 0 && entries[below - 1].block == block);
    return below - 1;
}

/* The leaf that holds the block: the first whose smallest entry is at or below it. */
static uint32_t directory_leaf_of(const struct tn_bin_directory *directory,
                                  const struct tn_block *block)
{
    return directory_find_leaf(directory, block->size, block->address + 1);
}

static void directory_remove(struct tn_bin *bin, const struct tn_block *block)
{
    struct tn_bin_directory *directory = bin->u.directory;
    const uint32_t at = directory_leaf_of(directory, block);
    struct bin_leaf *leaf = &directory->leaves[at];

    entries_close(leaf->entries, leaf->count, entries_index_of(leaf->entries, leaf->count, block));
    leaf->count--;
    if (leaf->count == 0 && directory->count > 1) {
        tn_host_free(leaf->entries, leaf_bytes);
        memmove(leaf, leaf + 1, (directory->count - at - 1) * sizeof *leaf);
        directory->count--;
    }
    if (directory->count == 1) {
        bin_drop_directory(bin);
    }
}

static void array_remove(struct tn_bin *bin, const struct tn_block *block)
{
    struct tn_bin_entry *entries = bin->u.entries;

    entries_close(entries, bin->count, entries_index_of(entries, bin->count, block));
    bin->count--;
}

void tn_bin_remove(struct tn_bin *bin, const struct tn_block *block)
{
    tn_assert(bin->count > 0);
    if (tn_likely(bin_is_near(bin))) {
        struct tn_bin_entry *near = bin->u.near;
        const bool first = near[0].block == block;

        tn_assert(first || (bin->count > 1 && near[1].block == block));
        near[0] = first ? near[1] : near[0];
        bin->count--;
    } else if (tn_likely(!bin_has_directory(bin))) {
        array_remove(bin, block);
    } else {
        bin->count--;
        directory_remove(bin, block);
    }
}

const struct tn_bin_entry *tn_bin_directory_min(const struct tn_bin_directory *directory)
{
    const struct bin_leaf *leaf = &directory->leaves[directory->count - 1];

    return &leaf->entries[leaf->count - 1];
}

struct tn_block *tn_bin_max(const struct tn_bin *bin)
{
    tn_assert(bin->count > 0);
    return bin_has_directory(bin) ? bin->u.directory->leaves[0].entries[0].block
                                  : bin_entries(bin)[0].block;
}

struct tn_block *tn_bin_find_from(const struct tn_bin *bin, uint64_t size, uint64_t address)
{
    if (bin->count == 0) {
        return NULL;
    }
    if (!bin_has_directory(bin)) {
        const struct tn_bin_entry *entries = bin_entries(bin);
        const uint32_t below = entries_first_below(entries, bin->count, size, address);

        return below == 0 ? NULL : entries[below - 1].block;
    }
    const struct tn_bin_directory *directory = bin->u.directory;
    const uint32_t at = directory_find_leaf(directory, size, address);
    const struct bin_leaf *leaf = &directory->leaves[at];
    const uint32_t below = entries_first_below(leaf->entries, leaf->count, size, address);

    if (below > 0) {
        return leaf->entries[below - 1].block;
    }
    return at == 0 ? NULL : leaf[-1].entries[leaf[-1].count - 1].block;
}

struct tn_block *tn_bin_find_before(const struct tn_bin *bin, uint64_t size, uint64_t address)
{
    if (bin->count == 0) {
        return NULL;
    }
    const struct tn_bin_entry *entries;
    uint32_t count = bin->count;

    if (!bin_has_directory(bin)) {
        entries = bin_entries(bin);
    } else {
        const struct tn_bin_directory *directory = bin->u.directory;
        const struct bin_leaf *leaf =
            &directory->leaves[directory_find_leaf(directory, size, address)];

        entries = leaf->entries;
        count = leaf->count;
    }
    const uint32_t below = entries_first_below(entries, count, size, address);

    return below == count ? NULL : entries[below].block;
}

void tn_bin_fini(struct tn_bin *bin)
{
    if (bin_has_directory(bin)) {
        struct tn_bin_directory *directory = bin->u.directory;

        for (uint32_t i = 0; i < directory->count; i++) {
            tn_host_free(directory->leaves[i].entries, leaf_bytes);
        }
        tn_host_free(directory->leaves, directory->capacity * sizeof *directory->leaves);
        tn_host_free(directory, sizeof *directory);
    } else if (!bin_is_near(bin)) {
        tn_host_free(bin->u.entries, bin->capacity * sizeof(struct tn_bin_entry));
    }
    *bin = (struct tn_bin){0};
}

size_t tn_bin_memory(const struct tn_bin *bin)
{
    if (!bin_has_directory(bin)) {
        return bin->capacity * sizeof(struct tn_bin_entry);
    }
    const struct tn_bin_directory *directory = bin->u.directory;

    return sizeof *directory + directory->capacity * sizeof *directory->leaves +
           directory->count * leaf_bytes;
}
