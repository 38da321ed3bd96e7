/* SPDX-License-Identifier: MIT */
/*
 * The reader inside of a page that opens snapshots itself (tarn_view_write_empty): the program's
 * own reader and writer of sections, compiled to WebAssembly. It refuses what the program refuses,
 * in the same words. It has no files, no network and no clock: bytes go in, sections come out.
 *
 * The viewer's reader.js calls these functions; nothing else does but a test. One file is read at a
 * time.
 */
#ifndef TN_PAGE_READER_H
#define TN_PAGE_READER_H

#include "tarn/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __wasm__
#define TN_READER_EXPORT(name) __attribute__((export_name(name)))
#else
#define TN_READER_EXPORT(name)
#endif

/* Room for a file, which tn_reader_read takes; NULL without memory. */
void *tn_reader_alloc(size_t size) TN_READER_EXPORT("alloc");

/* Reads a snapshot and writes its sections, which stay until the next call. Takes ownership of
 * `bytes`. Of a file that ends early, what could be read. Returns enum tarn_status. */
int tn_reader_read(void *bytes, size_t size) TN_READER_EXPORT("read");

/* Why it failed, or what was lost; "" otherwise. And the name of a status. */
const char *tn_reader_message(void) TN_READER_EXPORT("message");
const char *tn_reader_status_name(int status) TN_READER_EXPORT("status_name");

size_t tn_reader_section_count(void) TN_READER_EXPORT("section_count");
const char *tn_reader_section_name(size_t number) TN_READER_EXPORT("section_name");
const uint8_t *tn_reader_section_bytes(size_t number) TN_READER_EXPORT("section_bytes");
size_t tn_reader_section_size(size_t number) TN_READER_EXPORT("section_size");

#endif
