/* SPDX-License-Identifier: MIT */
/* Contents of blocks, if the recorded addresses have memory: both ends of each block are filled
 * with words determined by its request, which are checked when it is freed. */
#include "replay/verify_run.h"

#include "base/errinfo.h"
#include "base/host_mem.h"
#include "device/device_ops.h"

#include <string.h>

#define PIECE ((uint64_t)16 << 10) /* bytes at each end; smaller blocks are filled completely */

enum tarn_status tn_verify_contents_open(struct tn_verify_run *run, struct tarn_error *error)
{
    run->contents = tn_host_alloc(2 * PIECE);
    return run->contents ? TARN_OK : tn_fail_memory(error);
}

void tn_verify_contents_close(struct tn_verify_run *run)
{
    tn_host_free(run->contents, 2 * PIECE);
}

/* The expected byte at an offset of the block. */
static unsigned char byte_at(const struct tn_verify_block *block, uint64_t offset)
{
    const uint64_t word = (block->line << 32 | offset / 8) * 0x9e3779b97f4a7c15u;

    return (unsigned char)(word >> (offset % 8 * 8));
}

/* Start of the second piece, which ends with the block. */
static uint64_t second_start(const struct tn_verify_block *block)
{
    return block->size > 2 * PIECE ? block->size - PIECE : PIECE;
}

/* Size of a piece; the buffer has both in order. */
static uint64_t piece_size(const struct tn_verify_block *block, int piece)
{
    const uint64_t end = second_start(block);

    if (piece == 0) {
        return block->size < PIECE ? block->size : PIECE;
    }
    return block->size > end ? block->size - end : 0;
}

static enum tarn_status piece_copy(struct tn_verify_run *run, const struct tn_verify_block *block,
                                   int piece, bool write, struct tarn_error *error)
{
    const uint64_t there = block->ptr + (piece == 0 ? 0 : second_start(block));
    const uint64_t here = (uint64_t)(uintptr_t)(run->contents + (piece == 0 ? 0 : PIECE));
    const struct tn_copy copy = {
        .to_device = write ? run->device : NULL,
        .from_device = write ? NULL : run->device,
        .to = write ? there : here,
        .from = write ? here : there,
        .size = piece_size(block, piece),
    };

    if (copy.size == 0) {
        return TARN_OK;
    }
    const enum tarn_status st = run->device->ops->copy(run->device, &copy, 0);

    return st ? tn_fail(error, st, "line %llu of the decision log: the block cannot be %s: %s",
                        (unsigned long long)run->call.line, write ? "written" : "read",
                        run->device->ops->last_error(run->device))
              : TARN_OK;
}

/* Fills the buffer with the expected bytes of both pieces, or counts those that differ. */
static uint64_t pieces_walk(struct tn_verify_run *run, const struct tn_verify_block *block,
                            bool write)
{
    uint64_t wrong = 0;

    for (int piece = 0; piece < 2; piece++) {
        const uint64_t size = piece_size(block, piece);
        const uint64_t start = piece == 0 ? 0 : second_start(block);
        unsigned char *bytes = run->contents + (piece == 0 ? 0 : PIECE);

        for (uint64_t i = 0; i < size; i++) {
            const unsigned char byte = byte_at(block, start + i);

            if (write) {
                bytes[i] = byte;
            } else {
                wrong += bytes[i] != byte;
            }
        }
    }
    return wrong;
}

enum tarn_status tn_verify_contents_write(struct tn_verify_run *run, struct tarn_error *error)
{
    struct tn_verify_block *block = tn_verify_block(run, run->call.id);

    if (!run->contents || !block->ptr) {
        return TARN_OK;
    }
    block->size = run->call.size;
    block->line = run->call.line;
    (void)pieces_walk(run, block, true);
    const enum tarn_status st = piece_copy(run, block, 0, true, error);

    return st ? st : piece_copy(run, block, 1, true, error);
}

enum tarn_status tn_verify_contents_read(struct tn_verify_run *run, struct tarn_error *error)
{
    const struct tn_verify_block *block = tn_verify_block(run, run->call.id);
    enum tarn_status st = TARN_OK;

    if (!run->contents || block->size == 0) {
        return TARN_OK;
    }
    for (int piece = 0; piece < 2 && st == TARN_OK; piece++) {
        st = piece_copy(run, block, piece, false, error);
    }
    if (st) {
        return st;
    }
    const uint64_t wrong = pieces_walk(run, block, false);

    run->result->blocks_read++;
    if (wrong > 0) {
        tn_verify_differs(run, "  contents: %llu bytes are not those written on line %llu",
                          (unsigned long long)wrong, (unsigned long long)block->line);
    }
    return TARN_OK;
}

void tn_verify_contents_forget(struct tn_verify_run *run)
{
    struct tn_verify_block *blocks = run->ids.items;

    for (size_t i = 0; run->contents && i < run->ids.count; i++) {
        blocks[i].size = 0;
    }
}
