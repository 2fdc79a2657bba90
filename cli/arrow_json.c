// SPDX-License-Identifier: Apache-2.0
// Of Arrow's types only those that a survey's schema has.
#include "arrow_json.h"

#include "arrow/arrow.h"
#include "base64.h"

#include <math.h>
#include <stdlib.h>

static json_t *to_base64(const void *data, size_t size)
{
    struct bytes text = {0};
    base64_encode(&text, data, size);
    json_t *object = json_pack("{s:s#}", "base64", text.data, (int)text.size);
    free(text.data);
    return object;
}

static json_t *float_to_json(float number)
{
    if (isnan(number))
        return json_string("nan");
    if (isinf(number))
        return json_string(number > 0 ? "inf" : "-inf");
    return json_real((double)number);
}

static json_t *bytes_to_json(struct tfos_view bytes)
{
    json_t *text = json_stringn(bytes.data, bytes.size); // NULL when it is no UTF-8
    return text ? text : to_base64(bytes.data, bytes.size);
}

static json_t *list_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                            struct tfos__arrow_span span)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < span.count; i++)
        json_array_append_new(
            list, arrow_value_to_json(schema->children[0], array->children[0], span.first + i));
    return list;
}

static json_t *struct_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                              int64_t index)
{
    json_t *object = json_object();
    for (int64_t i = 0; object && i < schema->n_children; i++)
        json_object_set_new(
            object, schema->children[i]->name,
            arrow_value_to_json(schema->children[i], array->children[i], array->offset + index));
    return object;
}

json_t *arrow_value_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                            int64_t index)
{
    struct tfos__arrow_type type;
    if (tfos__arrow_type_read(&type, schema, NULL) < 0 || tfos__arrow_is_null(array, index))
        return json_null();
    switch (type.kind) {
    case TFOS__ARROW_STRUCT:
        return struct_to_json(schema, array, index);
    case TFOS__ARROW_LIST:
        return list_to_json(schema, array, tfos__arrow_list(&type, array, index));
    case TFOS__ARROW_INT:
        return json_integer(tfos__arrow_integer(&type, array, index));
    case TFOS__ARROW_FLOAT:
        return float_to_json((float)tfos__arrow_real(&type, array, index));
    default:
        return bytes_to_json(tfos__arrow_bytes(&type, array, index));
    }
}
