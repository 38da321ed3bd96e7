/* SPDX-License-Identifier: MIT */
#include "snapshot/decode_object.h"

const struct tn_value_list *tn_decode_items(const struct tn_decoder *decoder, struct tn_value value,
                                            bool dict)
{
    static const struct tn_value_list empty;

    if (tn_value_kind(value) != TN_VALUE_OBJECT) {
        return NULL;
    }
    const struct tn_object *object = tn_decode_object(decoder, value);
    if (object->kind == (dict ? TN_OBJECT_EMPTY_DICT : TN_OBJECT_EMPTY_LIST)) {
        return &empty;
    }
    const bool fits = dict ? object->kind == TN_OBJECT_DICT
                           : object->kind == TN_OBJECT_LIST || object->kind == TN_OBJECT_TUPLE;
    return fits ? tn_chunked_vec_at(&decoder->lists, object->index) : NULL;
}

bool tn_decode_is_dict(const struct tn_decoder *decoder, struct tn_value value)
{
    return tn_value_kind(value) == TN_VALUE_OBJECT &&
           tn_decode_object(decoder, value)->kind <= TN_OBJECT_BLOCK;
}

bool tn_decode_is_list(const struct tn_decoder *decoder, struct tn_value value)
{
    if (tn_value_kind(value) != TN_VALUE_OBJECT) {
        return false;
    }
    const struct tn_object *object = tn_decode_object(decoder, value);
    return object->kind >= TN_OBJECT_EMPTY_LIST && object->kind != TN_OBJECT_TUPLE;
}
