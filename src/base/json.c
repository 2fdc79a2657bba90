// SPDX-License-Identifier: Apache-2.0
// Text is written through Jansson's callback into memory of ours, so
// that tfos__free() is always the right way to end it.
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

static const char *type_name(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

enum tfos_status tfos__json_get_string(const json_t *object, const char *key, const char **out,
                                       struct tfos_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return tfos__fail(err, TFOS_INVALID, "json: member \"%s\" must be a string, but is %s", key,
                          type_name(value));
    *out = json_string_value(value);
    return TFOS_OK;
}

enum tfos_status tfos__json_get_int(const json_t *object, const char *key, int64_t min, int64_t max,
                                    int64_t *out, struct tfos_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return tfos__fail(err, TFOS_INVALID, "json: member \"%s\" must be an integer, but is %s",
                          key, type_name(value));
    int64_t number = json_integer_value(value);
    if (number < min || number > max)
        return tfos__fail(err, TFOS_INVALID,
                          "json: member \"%s\" must be from %" PRId64 " to %" PRId64
                          ", but is %" PRId64,
                          key, min, max, number);
    *out = number;
    return TFOS_OK;
}

const char *tfos__json_string_or(const json_t *object, const char *key, const char *fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : fallback;
}

int64_t tfos__json_int_or(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool tfos__json_bool_or(const json_t *object, const char *key, bool fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

enum tfos_status tfos__json_parse(const char *text, size_t size, json_t **out,
                                  struct tfos_error *err)
{
    json_error_t fault;
    json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, &fault);
    if (!value && json_error_code(&fault) == json_error_out_of_memory)
        return tfos__no_memory(err, "json", "a parsed value");
    if (!value)
        return tfos__fail(err, TFOS_CORRUPT, "json: cannot parse %zu bytes: %s (line %d, byte %d)",
                          size, fault.text, fault.line, fault.position);
    if (!json_is_object(value)) {
        const char *found = type_name(value);
        json_decref(value);
        return tfos__fail(err, TFOS_CORRUPT, "json: expected an object at byte 0, found %s", found);
    }
    *out = value;
    return TFOS_OK;
}

static int append_text(const char *text, size_t size, void *buffer)
{
    return tfos__buffer_append(buffer, text, size, NULL) == TFOS_OK ? 0 : -1;
}

char *tfos__json_text(const json_t *value)
{
    struct tfos__buffer buffer = {0};
    if (json_dump_callback(value, append_text, &buffer, JSON_COMPACT | JSON_ENCODE_ANY) != 0 ||
        tfos__buffer_append(&buffer, "", 1, NULL) != TFOS_OK) {
        tfos__buffer_clear(&buffer);
        return NULL;
    }
    return (char *)buffer.data;
}

enum tfos_status tfos__json_print(json_t *value, const char *module, const char *what, char **out,
                                  struct tfos_error *err)
{
    char *text = value ? tfos__json_text(value) : NULL;
    json_decref(value);
    if (!text)
        return tfos__no_memory(err, module, what);
    *out = text;
    return TFOS_OK;
}

json_t *tfos__json_repaired(const char *data, size_t size)
{
    char *clean = tfos__text_repair(data, size);
    json_t *text = clean ? json_string_nocheck(clean) : NULL;
    tfos__free(clean);
    return text;
}
