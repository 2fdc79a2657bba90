// SPDX-License-Identifier: Apache-2.0
// Of Arrow's types only those that a survey's schema has.
#include "arrow_json.h"

#include "base64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *to_base64(const char *data, size_t size)
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

static json_t *bytes_to_json(const struct ArrowArray *array, int64_t index)
{
    const int32_t *offsets = array->buffers[1];
    const char *bytes = (const char *)array->buffers[2] + offsets[index];
    size_t size = (size_t)(offsets[index + 1] - offsets[index]);
    json_t *text = json_stringn(bytes, size); // NULL when it is no UTF-8
    return text ? text : to_base64(bytes, size);
}

static json_t *list_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                            int64_t index)
{
    const int32_t *offsets = array->buffers[1];
    json_t *list = json_array();
    for (int64_t i = offsets[index]; list && i < offsets[index + 1]; i++)
        json_array_append_new(list,
                              arrow_value_to_json(schema->children[0], array->children[0], i));
    return list;
}

static json_t *struct_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                              int64_t index)
{
    json_t *object = json_object();
    for (int64_t i = 0; object && i < schema->n_children; i++)
        json_object_set_new(object, schema->children[i]->name,
                            arrow_value_to_json(schema->children[i], array->children[i], index));
    return object;
}

json_t *arrow_value_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                            int64_t index)
{
    const uint8_t *validity = array->buffers[0];
    index += array->offset;
    if (validity && !(validity[index / 8] >> index % 8 & 1))
        return json_null();
    if (strcmp(schema->format, "+s") == 0)
        return struct_to_json(schema, array, index);
    if (strcmp(schema->format, "+l") == 0)
        return list_to_json(schema, array, index);
    switch (schema->format[0]) {
    case 'l':
        return json_integer(((const int64_t *)array->buffers[1])[index]);
    case 'f':
        return float_to_json(((const float *)array->buffers[1])[index]);
    default:
        return bytes_to_json(array, index);
    }
}
