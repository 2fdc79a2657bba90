// SPDX-License-Identifier: Apache-2.0
#include "feed/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

static size_t count_nodes(const struct ArrowSchema *node)
{
    size_t count = 1;

    for (int64_t i = 0; i < node->n_children; i++)
        count += count_nodes(node->children[i]);
    return count;
}

static enum tfos_status add_field(struct tfos__feed_schema *schema, const struct ArrowSchema *node,
                                  struct tfos_error *err)
{
    struct tfos__feed_field *field = &schema->fields[schema->field_count++];
    enum tfos_status status = tfos__arrow_type_read(&field->type, node, err);

    field->name = node->name;
    field->metadata = node->metadata;
    field->child_count = node->n_children;
    if (status == TFOS_OK && field->type.layout == TFOS__ARROW_NOTHING)
        status = tfos__fail(err, TFOS_UNSUPPORTED,
                            "the feed does not carry values of type void: cast it to numbers, "
                            "text, bytes, dates, or lists or structs of such");
    if (status < 0) {
        tfos__fail_prefix(err, "column %s", node->name);
        return status;
    }
    for (int64_t i = 0; i < node->n_children; i++)
        TFOS__TRY(add_field(schema, node->children[i], err));
    return TFOS_OK;
}

// Takes over the tree, also on failure.
static enum tfos_status replace(struct tfos__feed_schema *schema, struct ArrowSchema *tree,
                                struct tfos_error *err)
{
    struct tfos__feed_schema made = {.tree = *tree};
    enum tfos_status status = TFOS_OK;

    made.fields = tfos__alloc(count_nodes(tree), sizeof(*made.fields));
    status =
        made.fields ? add_field(&made, &made.tree, err) : tfos__no_memory(err, "feed", "a schema");
    tfos__feed_schema_clear(status == TFOS_OK ? schema : &made);
    if (status == TFOS_OK)
        *schema = made;
    return status;
}

enum tfos_status tfos__feed_schema_take(struct tfos__feed_schema *schema,
                                        const struct ArrowSchema *arrow, struct tfos_error *err)
{
    struct ArrowSchema tree;

    TFOS__TRY(tfos_arrow_schema_copy(arrow, &tree, err));
    return tfos__fail_in(err, replace(schema, &tree, err), "feed");
}

enum tfos_status tfos__feed_schema_decode(struct tfos__feed_schema *schema, const uint8_t *body,
                                          size_t size, struct tfos_error *err)
{
    struct ArrowSchema tree;
    enum tfos_status status = tfos__arrow_schema_decode(body, size, &tree, err);

    if (status == TFOS_OK)
        status = replace(schema, &tree, err);
    // What does not fit together is a peer's mistake.
    return tfos__fail_in(err, status == TFOS_INVALID ? TFOS_CORRUPT : status, "feed");
}

void tfos__feed_schema_clear(struct tfos__feed_schema *schema)
{
    tfos__arrow_schema_release(&schema->tree);
    tfos__free(schema->fields);
    *schema = (struct tfos__feed_schema){0};
}

// ---- pickles: what is allowed is listed, and not what is refused, so that a type that is added
// later is refused until it is listed here. A key may come twice, and whoever reads the schema
// takes the first or the last: each must be allowed.

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

    memcpy(&size, *metadata, sizeof(size));
    struct text text = {*metadata + sizeof(size), (size_t)size};
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

    name_column(schema, number, name, sizeof(name));
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "feed: column %s is of type \"%.*s\", which is read by Python's pickle, and "
                      "this cluster refuses pickles (allow_pickle=False): make it numbers, text, "
                      "bytes, or lists or arrays of one of these, with one type in all rows",
                      name, (int)(kind.size < 40 ? kind.size : 40), kind.data);
}

static enum tfos_status check_metadata(const struct tfos__feed_schema *schema, size_t number,
                                       struct tfos_error *err)
{
    const char *metadata = schema->fields[number].metadata;
    int32_t pair_count = 0;

    if (!metadata)
        return TFOS_OK;
    memcpy(&pair_count, metadata, sizeof(pair_count));
    metadata += sizeof(pair_count);
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
        status = check_metadata(schema, i, err);
    if (status < 0)
        tfos__feed_schema_clear(schema);
    return status;
}
