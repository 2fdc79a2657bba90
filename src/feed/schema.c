// SPDX-License-Identifier: Apache-2.0
// The body: for each field, depth first, format, name and metadata, each as a 4-byte length and its
// bytes (a length of 0xFFFFFFFF: no metadata); flags (8); number of children (4). All numbers are
// in the machine's byte order and lie wherever they fall.
#include "feed/schema.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define NO_METADATA UINT32_MAX

static enum tfos_status append_block(struct tfos__buffer *body, const void *data, size_t size,
                                     struct tfos_error *err)
{
    uint32_t prefix = (uint32_t)size;

    if (size >= NO_METADATA)
        return tfos__fail(err, TFOS_INVALID, "feed: a schema has a name or metadata of %zu bytes",
                          size);
    TFOS__TRY(tfos__buffer_append(body, &prefix, sizeof prefix, err));
    return tfos__buffer_append(body, data, size, err);
}

// Arrow's metadata: a count of pairs, then key and value, each with its 4-byte length. The size of
// it all, or SIZE_MAX when it does not end within `limit` bytes.
static size_t metadata_size(const char *metadata, size_t limit)
{
    size_t size = sizeof(int32_t);
    int32_t number = 0;

    if (limit < size)
        return SIZE_MAX;
    memcpy(&number, metadata, sizeof number);
    for (int64_t left = 2 * (int64_t)number; left > 0; left--) {
        if (limit - size < sizeof number)
            return SIZE_MAX;
        memcpy(&number, metadata + size, sizeof number);
        size += sizeof number;
        if (number < 0 || limit - size < (size_t)number)
            return SIZE_MAX;
        size += (size_t)number;
    }
    return size;
}

static enum tfos_status encode_field(const struct ArrowSchema *arrow, struct tfos__buffer *body,
                                     int depth, struct tfos_error *err)
{
    const char *name = arrow->name ? arrow->name : "";
    uint32_t child_count = (uint32_t)arrow->n_children;
    uint32_t none = NO_METADATA;

    if (depth > TFOS__SCHEMA_DEPTH || arrow->n_children < 0 ||
        arrow->n_children > TFOS__SCHEMA_FIELDS)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: column %s: nested deeper than %d levels or more than %d children",
                          name, TFOS__SCHEMA_DEPTH, TFOS__SCHEMA_FIELDS);
    if (arrow->dictionary)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: column %s: dictionary encoding is not supported; decode it first",
                          name);
    TFOS__TRY(append_block(body, arrow->format, strlen(arrow->format), err));
    TFOS__TRY(append_block(body, name, strlen(name), err));
    if (arrow->metadata)
        TFOS__TRY(
            append_block(body, arrow->metadata, metadata_size(arrow->metadata, SIZE_MAX), err));
    else
        TFOS__TRY(tfos__buffer_append(body, &none, sizeof none, err));
    TFOS__TRY(tfos__buffer_append(body, &arrow->flags, sizeof arrow->flags, err));
    TFOS__TRY(tfos__buffer_append(body, &child_count, sizeof child_count, err));
    for (int64_t i = 0; i < arrow->n_children; i++)
        TFOS__TRY(encode_field(arrow->children[i], body, depth + 1, err));
    return TFOS_OK;
}

enum tfos_status tfos__schema_encode(const struct ArrowSchema *arrow, struct tfos__buffer *body,
                                     struct tfos_error *err)
{
    body->begin = 0;
    body->end = 0;
    if (strcmp(arrow->format, "+s") != 0)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: a batch is a struct of columns, and this one is something else");
    return encode_field(arrow, body, 0, err);
}

// A walk over the body; `text` receives the strings.
struct cursor {
    const uint8_t *body;
    size_t size, position;
    char *text;
    size_t text_size;
};

static bool take(struct cursor *cursor, void *out, size_t size)
{
    if (cursor->size - cursor->position < size)
        return false;
    memcpy(out, cursor->body + cursor->position, size);
    cursor->position += size;
    return true;
}

// One length and its bytes, copied to the text and ended by NUL. `*out` is NULL for the length that
// stands for none.
static bool take_block(struct cursor *cursor, const char **out, size_t *out_size)
{
    uint32_t size = 0;

    if (!take(cursor, &size, sizeof size))
        return false;
    *out = NULL;
    *out_size = 0;
    if (size == NO_METADATA)
        return true;
    char *text = cursor->text + cursor->text_size;
    if (!take(cursor, text, size))
        return false;
    text[size] = '\0';
    cursor->text_size += (size_t)size + 1;
    *out = text;
    *out_size = size;
    return true;
}

static enum tfos_status decode_field(struct cursor *cursor, struct tfos__field *field,
                                     struct tfos_error *err)
{
    size_t format_size = 0, name_size = 0, size = 0;
    uint32_t child_count = 0;

    if (!take_block(cursor, &field->format, &format_size) ||
        !take_block(cursor, &field->name, &name_size) ||
        !take_block(cursor, &field->metadata, &size) ||
        !take(cursor, &field->flags, sizeof field->flags) ||
        !take(cursor, &child_count, sizeof child_count) || !field->format || !field->name ||
        strlen(field->format) != format_size || strlen(field->name) != name_size ||
        (field->metadata && metadata_size(field->metadata, size) != size))
        return tfos__fail(err, TFOS_CORRUPT, "feed: a schema of %zu bytes is broken at byte %zu",
                          cursor->size, cursor->position);
    field->child_count = child_count;
    if (!tfos__column_parse(field->format, &field->column))
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "feed: column %s: the feed does not carry values of its type: cast it to "
                          "numbers, text, bytes, dates, or lists or structs of such",
                          field->name);
    bool is_struct = field->column.kind == TFOS__COLUMN_STRUCT;
    uint32_t expected =
        field->column.kind == TFOS__COLUMN_LIST || field->column.kind == TFOS__COLUMN_FIXED_LIST;
    if (child_count > TFOS__SCHEMA_FIELDS || (!is_struct && child_count != expected))
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: column %s: its type cannot have %u columns within it", field->name,
                          child_count);
    return TFOS_OK;
}

// Reads fields until the tree that begins with the first is whole.
static enum tfos_status decode_tree(struct cursor *cursor, struct tfos__schema *schema,
                                    size_t capacity, struct tfos_error *err)
{
    int64_t missing[TFOS__SCHEMA_DEPTH + 2] = {1}; // children not yet read, at each level
    int depth = 0;

    while (depth >= 0) {
        if (missing[depth] == 0) {
            depth--;
            continue;
        }
        missing[depth]--;
        if (schema->field_count == capacity || depth > TFOS__SCHEMA_DEPTH)
            return tfos__fail(err, TFOS_CORRUPT,
                              "feed: a schema of %zu bytes has too many fields or levels",
                              cursor->size);
        struct tfos__field *field = &schema->fields[schema->field_count++];
        TFOS__TRY(decode_field(cursor, field, err));
        missing[++depth] = field->child_count;
    }
    if (cursor->position != cursor->size || schema->fields[0].column.kind != TFOS__COLUMN_STRUCT)
        return tfos__fail(
            err, TFOS_CORRUPT,
            "feed: a schema of %zu bytes does not end with its fields or is no struct",
            cursor->size);
    return TFOS_OK;
}

enum tfos_status tfos__schema_decode(const uint8_t *body, size_t size, struct tfos__schema **out,
                                     struct tfos_error *err)
{
    const size_t least = 3 * sizeof(uint32_t) + sizeof(int64_t) + sizeof(uint32_t);
    size_t capacity = size / least < TFOS__SCHEMA_FIELDS ? size / least : TFOS__SCHEMA_FIELDS;
    struct tfos__schema *schema = tfos__alloc(1, sizeof *schema);
    enum tfos_status status = TFOS_OK;

    if (!schema)
        return tfos__no_memory(err, "feed", "a schema");
    schema->references = 1;
    schema->fields = tfos__alloc(capacity, sizeof *schema->fields);
    // The NULs that end the strings take the place of the lengths before them. The private copy of
    // the body cannot change between a check and a use.
    uint8_t *copy = tfos__alloc(size + 1, 1);
    schema->text = tfos__alloc(size + 1, 1);
    if (!schema->fields || !copy || !schema->text) {
        status = tfos__no_memory(err, "feed", "a schema");
        goto free_copy;
    }
    memcpy(copy, body, size);
    struct cursor cursor = {.body = copy, .size = size, .text = schema->text};
    status = decode_tree(&cursor, schema, capacity, err);
free_copy:
    tfos__free(copy);
    if (status == TFOS_OK)
        *out = schema;
    else
        tfos__schema_release(schema);
    return status;
}

struct tfos__schema *tfos__schema_share(struct tfos__schema *schema)
{
    atomic_fetch_add_explicit(&schema->references, 1, memory_order_relaxed);
    return schema;
}

void tfos__schema_release(struct tfos__schema *schema)
{
    if (!schema || atomic_fetch_sub(&schema->references, 1) != 1)
        return;
    tfos__free(schema->fields);
    tfos__free(schema->text);
    tfos__free(schema);
}

// All nodes of one exported tree in one block. Every node holds a reference, because Arrow lets a
// consumer move a child away and release the rest.
struct exported {
    atomic_int references;
    struct tfos__schema *schema;
    struct ArrowSchema **children;
    struct ArrowSchema nodes[];
};

static void release_exported(struct ArrowSchema *arrow)
{
    struct exported *exported = arrow->private_data;

    for (int64_t i = 0; i < arrow->n_children; i++)
        if (arrow->children[i]->release)
            arrow->children[i]->release(arrow->children[i]);
    arrow->release = NULL;
    if (atomic_fetch_sub(&exported->references, 1) != 1)
        return;
    tfos__schema_release(exported->schema);
    tfos__free(exported->children);
    tfos__free(exported);
}

// Fills the node of field `index` and those below it; the index after them.
static size_t export_field(struct exported *exported, size_t index, struct ArrowSchema ***children)
{
    const struct tfos__field *field = &exported->schema->fields[index];
    struct ArrowSchema *node = &exported->nodes[index];
    size_t next = index + 1;

    *node = (struct ArrowSchema){.format = field->format,
                                 .name = field->name,
                                 .metadata = field->metadata,
                                 .flags = field->flags,
                                 .n_children = field->child_count,
                                 .children = *children,
                                 .release = release_exported,
                                 .private_data = exported};
    *children += field->child_count;
    for (int64_t i = 0; i < field->child_count; i++) {
        node->children[i] = &exported->nodes[next];
        next = export_field(exported, next, children);
    }
    return next;
}

enum tfos_status tfos__schema_export(struct tfos__schema *schema, struct ArrowSchema *arrow,
                                     struct tfos_error *err)
{
    struct exported *exported =
        tfos__alloc(1, sizeof *exported + schema->field_count * sizeof exported->nodes[0]);
    struct ArrowSchema **children =
        exported ? tfos__alloc(schema->field_count, sizeof(struct ArrowSchema *)) : NULL;

    if (!children) {
        tfos__free(exported);
        return tfos__no_memory(err, "feed", "a schema");
    }
    exported->references = (int)schema->field_count;
    exported->schema = tfos__schema_share(schema);
    exported->children = children;
    export_field(exported, 0, &children);
    *arrow = exported->nodes[0];
    return TFOS_OK;
}
