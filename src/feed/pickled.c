// SPDX-License-Identifier: Apache-2.0
// What is allowed is listed, and not what is refused: a type that comes to be later is refused
// until it is known here. A key may come twice, and whoever reads the schema takes the first or the
// last: each must be allowed.
#include "feed/pickled.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

// Kinds of rows and of values that are made without pickle (docs/protocol.md, "rows of Python").
static const char *const row_kinds[] = {"value", "tuple", "list", "dict", "row"};
static const char *const value_kinds[] = {"null",  "bool",   "int",  "float", "text",
                                          "bytes", "scalar", "list", "tuple", "array"};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

struct text {
    const char *data;
    size_t size;
};

static bool equals(struct text text, const char *other)
{
    return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}

static bool is_among(struct text text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (equals(text, list[i]))
            return true;
    return false;
}

static struct text take_text(const char **metadata)
{
    int32_t size = 0;

    memcpy(&size, *metadata, sizeof size);
    struct text text = {*metadata + sizeof size, (size_t)size};
    *metadata = text.data + text.size;
    return text;
}

// "list" of "list int 3".
static struct text first_word(struct text text)
{
    const char *end = memchr(text.data, ' ', text.size);

    return (struct text){text.data, end ? (size_t)(end - text.data) : text.size};
}

static enum tfos_status refuse_rows(struct text kind, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "feed: rows of type \"%.*s\" are read by Python's pickle, and this cluster "
                      "refuses pickles (allow_pickle=False): feed tuples, lists, dicts or Rows",
                      (int)(kind.size < 40 ? kind.size : 40), kind.data);
}

// The column of the batch that a field is, or is in: its name, or, as of tuples, its place.
static void name_column(const struct tfos__feed_schema *schema, size_t number, char *name,
                        size_t size)
{
    size_t first = 0, place = 0;

    for (size_t field = 1; field <= number; place++) {
        first = field;
        for (int64_t left = 1; left > 0; field++)
            left += schema->fields[field].child_count - 1;
    }
    if (schema->fields[first].name[0] != '\0')
        snprintf(name, size, "%s", schema->fields[first].name);
    else
        snprintf(name, size, "%zu", place - 1);
}

static enum tfos_status refuse_column(const struct tfos__feed_schema *schema, size_t number,
                                      struct text kind, struct tfos_error *err)
{
    char name[200];

    name_column(schema, number, name, sizeof name);
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "feed: column %s is of type \"%.*s\", which is read by Python's pickle, and "
                      "this cluster refuses pickles (allow_pickle=False): make it numbers, text, "
                      "bytes, or lists or arrays of one of these, with one type in all rows",
                      name, (int)(kind.size < 40 ? kind.size : 40), kind.data);
}

static enum tfos_status check_field(const struct tfos__feed_schema *schema, size_t number,
                                    struct tfos_error *err)
{
    const char *metadata = schema->fields[number].metadata;
    int32_t pair_count = 0;

    if (!metadata)
        return TFOS_OK;
    memcpy(&pair_count, metadata, sizeof pair_count);
    metadata += sizeof pair_count;
    for (; pair_count > 0; pair_count--) {
        struct text key = take_text(&metadata);
        struct text value = take_text(&metadata);
        if (equals(key, "tfos.row") && !is_among(value, row_kinds, COUNT(row_kinds)))
            return refuse_rows(value, err);
        if (equals(key, "tfos.value") &&
            !is_among(first_word(value), value_kinds, COUNT(value_kinds)))
            return refuse_column(schema, number, value, err);
    }
    return TFOS_OK;
}

enum tfos_status tfos__feed_schema_refuse_pickles(struct tfos__feed_schema *schema,
                                                  struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    for (size_t i = 0; i < schema->field_count && status == TFOS_OK; i++)
        status = check_field(schema, i, err);
    if (status < 0)
        tfos__feed_schema_clear(schema);
    return status;
}
