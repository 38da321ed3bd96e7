/* SPDX-License-Identifier: MIT */
#define ZLIB_CONST /* its input is const */
#include "base/pack.h"

#include "base/host_mem.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum {
    ROOM = 1 << 16,
    GZIP_WINDOW = 15 + 16, /* largest window, gzip header */
    GZIP_MEMORY = 8        /* zlib's own default */
};

struct tn_pack {
    enum tn_packing packing;
    struct tarn_writer writer;
    z_stream gzip;
    bool gzip_open;
    ZSTD_CStream *zstd; /* its memory does not come from the host hooks: its public interface has no
                           way */
    uint8_t room[ROOM];
};

static const struct ending {
    const char *text;
    enum tn_packing packing;
} endings[] = {{".gz", TN_PACKING_GZIP}, {".zst", TN_PACKING_ZSTD}, {".zstd", TN_PACKING_ZSTD}};

static const struct ending *ending_find(const char *path)
{
    const size_t length = strlen(path);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t size = strlen(endings[i].text);

        if (length > size && strcmp(path + length - size, endings[i].text) == 0) {
            return &endings[i];
        }
    }
    return NULL;
}

enum tn_packing tn_packing_of(const char *path)
{
    const struct ending *ending = ending_find(path);

    return ending ? ending->packing : TN_PACKING_NONE;
}

size_t tn_packing_name_length(const char *path)
{
    const struct ending *ending = ending_find(path);

    return strlen(path) - (ending ? strlen(ending->text) : 0);
}

static bool pack_start(struct tn_pack *pack)
{
    if (pack->packing == TN_PACKING_GZIP) {
        pack->gzip.zalloc = tn_host_zlib_alloc;
        pack->gzip.zfree = tn_host_zlib_free;
        pack->gzip_open = deflateInit2(&pack->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                                       GZIP_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
        return pack->gzip_open;
    }
    pack->zstd = ZSTD_createCStream();
    return pack->zstd && !ZSTD_isError(ZSTD_initCStream(pack->zstd, ZSTD_CLEVEL_DEFAULT));
}

struct tn_pack *tn_pack_create(enum tn_packing packing, const struct tarn_writer *writer)
{
    struct tn_pack *pack = tn_host_alloc_zero(sizeof *pack);

    if (pack) {
        pack->packing = packing;
        pack->writer = *writer;
        if (!pack_start(pack)) {
            tn_pack_destroy(pack);
            return NULL;
        }
    }
    return pack;
}

void tn_pack_destroy(struct tn_pack *pack)
{
    if (!pack) {
        return;
    }
    if (pack->gzip_open) {
        (void)deflateEnd(&pack->gzip);
    }
    (void)ZSTD_freeCStream(pack->zstd);
    tn_host_free(pack, sizeof *pack);
}

static enum tarn_status room_write(struct tn_pack *pack, size_t used)
{
    if (used == 0) {
        return TARN_OK;
    }
    tn_written_outside(pack->room, used);
    return pack->writer.write(pack->writer.context, (const char *)pack->room, used);
}

/* Compresses at most UINT_MAX bytes. */
static enum tarn_status gzip_put(struct tn_pack *pack, const char *bytes, size_t size, int flush)
{
    z_stream *gzip = &pack->gzip;
    enum tarn_status status = TARN_OK;
    int code;

    gzip->next_in = (const Bytef *)bytes;
    gzip->avail_in = (uInt)size;
    do {
        gzip->next_out = pack->room;
        gzip->avail_out = ROOM;
        code = deflate(gzip, flush);
        status = room_write(pack, ROOM - gzip->avail_out);
    } while (status == TARN_OK && gzip->avail_out == 0 && code != Z_STREAM_END);
    return status;
}

static enum tarn_status zstd_put(struct tn_pack *pack, const char *bytes, size_t size,
                                 ZSTD_EndDirective flush)
{
    ZSTD_inBuffer in = {bytes, size, 0};
    enum tarn_status status = TARN_OK;
    size_t left;

    do {
        ZSTD_outBuffer out = {pack->room, ROOM, 0};

        left = ZSTD_compressStream2(pack->zstd, &out, &in, flush);
        if (ZSTD_isError(left)) {
            return TARN_ERR_HOST_MEMORY; /* the input has no other way to fail */
        }
        status = room_write(pack, out.pos);
    } while (status == TARN_OK && (in.pos < in.size || (flush == ZSTD_e_end && left > 0)));
    return status;
}

enum tarn_status tn_pack_write(struct tn_pack *pack, const char *bytes, size_t size)
{
    enum tarn_status status = TARN_OK;

    if (pack->packing == TN_PACKING_ZSTD) {
        return zstd_put(pack, bytes, size, ZSTD_e_continue);
    }
    while (status == TARN_OK && size > 0) {
        const size_t part = size < UINT_MAX ? size : UINT_MAX;

        status = gzip_put(pack, bytes, part, Z_NO_FLUSH);
        bytes += part;
        size -= part;
    }
    return status;
}

enum tarn_status tn_pack_end(struct tn_pack *pack)
{
    return pack->packing == TN_PACKING_ZSTD ? zstd_put(pack, "", 0, ZSTD_e_end)
                                            : gzip_put(pack, "", 0, Z_FINISH);
}
