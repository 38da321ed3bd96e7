/* SPDX-License-Identifier: MIT */
#include "base/pack.h"

#include "base/host_mem.h"

#include <string.h>

enum {
    ROOM = 1 << 16
};

struct tn_pack {
    const struct tn_codec *codec;
    struct tarn_writer writer;
    void *state; /* of the codec */
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

struct tn_pack *tn_pack_create(enum tn_packing packing, const struct tarn_writer *writer)
{
    const struct tn_codec *codec = tn_packing_codec(packing);
    struct tn_pack *pack = tn_host_alloc_zero(sizeof *pack);

    if (pack) {
        pack->codec = codec;
        pack->writer = *writer;
        pack->state = codec->pack_open();
        if (!pack->state) {
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
    if (pack->state) {
        pack->codec->pack_close(pack->state);
    }
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

static enum tarn_status pack_put(struct tn_pack *pack, const char *bytes, size_t size, bool is_last)
{
    struct tn_codec_step step = {.in = (const uint8_t *)bytes, .in_left = size};
    enum tn_codec_result result = TN_CODEC_MORE;
    enum tarn_status status = TARN_OK;

    while (status == TARN_OK && result == TN_CODEC_MORE) {
        step.out = pack->room;
        step.out_left = ROOM;
        result = pack->codec->pack(pack->state, &step, is_last);
        status = result == TN_CODEC_MEMORY ? TARN_ERR_HOST_MEMORY
                                           : room_write(pack, ROOM - step.out_left);
    }
    return status;
}

enum tarn_status tn_pack_write(struct tn_pack *pack, const char *bytes, size_t size)
{
    return pack_put(pack, bytes, size, false);
}

enum tarn_status tn_pack_end(struct tn_pack *pack)
{
    return pack_put(pack, "", 0, true);
}
