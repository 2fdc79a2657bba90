// SPDX-License-Identifier: Apache-2.0
// One block of memory holds a node's children, the list of them, and its texts.
#include "arrow/arrow_schema.h"

#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

// ---- metadata
//
// A count of pairs, then of each pair the key and the value, each as its size and its bytes. All
// numbers have 4 bytes, in the machine's byte order, and are not aligned.

// The number at `*metadata`, which moves behind it.
static int32_t take_number(const char **metadata)
{
    int32_t number = 0;
    memcpy(&number, *metadata, sizeof(number));
    *metadata += sizeof(number);
    return number;
}

static const char *take_text(const char **metadata, size_t *size)
{
    *size = (size_t)take_number(metadata);
    const char *text = *metadata;
    *metadata += *size;
    return text;
}

size_t tfos__arrow_metadata_size(const char *metadata, size_t limit)
{
    const char *end = metadata;
    if (!metadata)
        return 0;
    if (limit < sizeof(int32_t))
        return SIZE_MAX;
    for (int64_t left = 2 * (int64_t)take_number(&end); left > 0; left--) {
        if (limit - (size_t)(end - metadata) < sizeof(int32_t))
            return SIZE_MAX;
        int32_t size = take_number(&end);
        if (size < 0 || limit - (size_t)(end - metadata) < (size_t)size)
            return SIZE_MAX;
        end += size;
    }
    return (size_t)(end - metadata);
}

const char *tfos_arrow_metadata_get(const char *metadata, const char *key, size_t *size)
{
    size_t wanted_size = strlen(key), key_size = 0;
    if (!metadata)
        return NULL;
    for (int32_t left = take_number(&metadata); left > 0; left--) {
        const char *found_key = take_text(&metadata, &key_size);
        const char *found = take_text(&metadata, size);
        if (key_size == wanted_size && memcmp(found_key, key, key_size) == 0)
            return found;
    }
    return NULL;
}

bool tfos_arrow_metadata_find(const char *metadata, const char *key, char *value, size_t size)
{
    size_t value_size = 0;
    const char *found = tfos_arrow_metadata_get(metadata, key, &value_size);
    if (!found || value_size >= size)
        return false;
    memcpy(value, found, value_size);
    value[value_size] = '\0';
    return true;
}

char *tfos__arrow_metadata_add(const char *metadata, const char *key, struct tfos_view value)
{
    const struct tfos_view texts[] = {{key, strlen(key)}, value};
    size_t old_size = metadata ? tfos__arrow_metadata_size(metadata, SIZE_MAX) : 0;
    int32_t number = metadata ? take_number(&metadata) + 1 : 1;
    size_t used = sizeof(number);
    char *made =
        tfos__alloc((old_size ? old_size : used) + 2 * used + texts[0].size + value.size, 1);
    if (!made)
        return NULL;
    memcpy(made, &number, sizeof(number));
    if (old_size > 0) {
        memcpy(made + used, metadata, old_size - used);
        used = old_size;
    }
    for (int i = 0; i < 2; i++) {
        number = (int32_t)texts[i].size;
        memcpy(made + used, &number, sizeof(number));
        used += sizeof(number);
        if (number > 0)
            memcpy(made + used, texts[i].data, texts[i].size);
        used += texts[i].size;
    }
    return made;
}

// ---- nodes

struct block {
    char *note; ///< metadata that was given later; owned
    struct ArrowSchema children[];
};

/// What a node is made of. The texts need no NUL; metadata may have no data.
struct parts {
    struct tfos_view format, name, metadata;
    int64_t flags, child_count;
};

static struct tfos_view view_of(const char *text)
{
    return (struct tfos_view){text, strlen(text)};
}

static void release(struct ArrowSchema *schema)
{
    struct block *block = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++)
        tfos__arrow_schema_release(schema->children[i]);
    if (schema->dictionary)
        tfos__arrow_schema_release(schema->dictionary);
    tfos__free(schema->dictionary);
    tfos__free(block->note);
    tfos__free(block);
    schema->release = NULL;
}

void tfos__arrow_schema_release(struct ArrowSchema *schema)
{
    if (schema->release)
        schema->release(schema);
}

/// Copies a text to `*at`, which moves behind its end.
static const char *put_text(char **at, struct tfos_view text)
{
    char *copy = *at;
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    *at += text.size + 1;
    return copy;
}

static enum tfos_status make_node(struct ArrowSchema *schema, const struct parts *parts,
                                  struct tfos_error *err)
{
    size_t count = (size_t)parts->child_count;
    struct block *block =
        tfos__alloc(sizeof(*block) + count * (sizeof(struct ArrowSchema) + sizeof(void *)) +
                        parts->format.size + parts->name.size + parts->metadata.size + 3,
                    1);
    if (!block)
        return tfos__no_memory(err, "arrow", "a schema");
    struct ArrowSchema **list = (struct ArrowSchema **)(void *)(block->children + count);
    char *texts = (char *)(list + count);
    for (size_t i = 0; i < count; i++)
        list[i] = &block->children[i];
    *schema = (struct ArrowSchema){.flags = parts->flags,
                                   .n_children = parts->child_count,
                                   .children = count > 0 ? list : NULL,
                                   .release = release,
                                   .private_data = block};
    schema->format = put_text(&texts, parts->format);
    schema->name = put_text(&texts, parts->name);
    schema->metadata = parts->metadata.data ? put_text(&texts, parts->metadata) : NULL;
    return TFOS_OK;
}

enum tfos_status tfos__arrow_schema_init(struct ArrowSchema *schema, struct tfos__arrow_type type,
                                         const char *name, int64_t child_count,
                                         struct tfos_error *err)
{
    char format[TFOS__ARROW_TEXT_SIZE];
    const struct parts parts = {.format = view_of(tfos__arrow_type_format(&type, format)),
                                .name = view_of(name),
                                .flags = ARROW_FLAG_NULLABLE,
                                .child_count = child_count};
    return make_node(schema, &parts, err);
}

enum tfos_status tfos__arrow_schema_init_struct(struct ArrowSchema *schema, int64_t child_count,
                                                struct tfos_error *err)
{
    TFOS__TRY(tfos__arrow_schema_init(schema, tfos__arrow_type_of(TFOS__ARROW_STRUCT, 0, 0), "",
                                      child_count, err));
    schema->flags = 0;
    return TFOS_OK;
}

enum tfos_status tfos__arrow_schema_note(struct ArrowSchema *schema, const char *key,
                                         struct tfos_view value, struct tfos_error *err)
{
    struct block *block = schema->private_data;
    char *note = tfos__arrow_metadata_add(schema->metadata, key, value);
    if (!note)
        return tfos__no_memory(err, "arrow", "a schema's metadata");
    tfos__free(block->note);
    block->note = note;
    schema->metadata = note;
    return TFOS_OK;
}

// ---- copies

static enum tfos_status copy(const struct ArrowSchema *schema, struct ArrowSchema *out, int depth,
                             struct tfos_error *err)
{
    const struct parts parts = {
        .format = view_of(schema->format),
        .name = view_of(schema->name ? schema->name : ""),
        .metadata = {schema->metadata, tfos__arrow_metadata_size(schema->metadata, SIZE_MAX)},
        .flags = schema->flags,
        .child_count = schema->n_children};
    if (depth > TFOS__ARROW_DEPTH)
        return tfos__fail(err, TFOS_UNSUPPORTED, "arrow: a schema of more than %d levels",
                          TFOS__ARROW_DEPTH);
    TFOS__TRY(make_node(out, &parts, err));
    if (schema->dictionary) {
        out->dictionary = tfos__alloc(1, sizeof(*out->dictionary));
        if (!out->dictionary)
            return tfos__no_memory(err, "arrow", "a schema's dictionary");
        TFOS__TRY(copy(schema->dictionary, out->dictionary, depth + 1, err));
    }
    for (int64_t i = 0; i < schema->n_children; i++)
        TFOS__TRY(copy(schema->children[i], out->children[i], depth + 1, err));
    return TFOS_OK;
}

/// Moves the schema to `out`, or, after a failure, releases what was made of it.
static enum tfos_status finish(enum tfos_status status, struct ArrowSchema *made,
                               struct ArrowSchema *out)
{
    if (status == TFOS_OK)
        *out = *made;
    else
        tfos__arrow_schema_release(made);
    return status;
}

enum tfos_status tfos_arrow_schema_copy(const struct ArrowSchema *schema, struct ArrowSchema *out,
                                        struct tfos_error *err)
{
    struct ArrowSchema made = {0};
    return finish(copy(schema, &made, 0, err), &made, out);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || strcmp(a ? a : "", b ? b : "") == 0;
}

bool tfos__arrow_schema_equals(const struct ArrowSchema *a, const struct ArrowSchema *b)
{
    size_t size = tfos__arrow_metadata_size(a->metadata, SIZE_MAX);
    if (!is_same_text(a->format, b->format) || !is_same_text(a->name, b->name) ||
        a->n_children != b->n_children ||
        tfos__arrow_metadata_size(b->metadata, SIZE_MAX) != size ||
        (size > 0 && memcmp(a->metadata, b->metadata, size) != 0))
        return false;
    for (int64_t i = 0; i < a->n_children; i++)
        if (!tfos__arrow_schema_equals(a->children[i], b->children[i]))
            return false;
    return true;
}

// ---- bytes
//
// Of each node, depth first: format, name and metadata, each as a 4-byte size and its bytes (a size
// of 0xFFFFFFFF: no metadata); flags (8); number of children (4). All numbers are in the machine's
// byte order and lie wherever they fall.

#define NO_METADATA UINT32_MAX
#define LEAST_NODE (3 * sizeof(uint32_t) + sizeof(int64_t) + sizeof(uint32_t)) // bytes

static enum tfos_status put_block(struct tfos__buffer *body, const void *data, size_t size,
                                  struct tfos_error *err)
{
    uint32_t prefix = data ? (uint32_t)size : NO_METADATA;
    if (size >= NO_METADATA)
        return tfos__fail(err, TFOS_INVALID, "a schema has a name or metadata of %zu bytes", size);
    TFOS__TRY(tfos__buffer_append(body, &prefix, sizeof(prefix), err));
    return tfos__buffer_append(body, data, size, err);
}

static enum tfos_status encode_node(const struct ArrowSchema *schema, struct tfos__buffer *body,
                                    int depth, struct tfos_error *err)
{
    const char *name = schema->name ? schema->name : "";
    uint32_t child_count = (uint32_t)schema->n_children;
    if (depth > TFOS__ARROW_DEPTH || schema->n_children < 0 ||
        schema->n_children > TFOS__ARROW_FIELDS_LIMIT)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: nested deeper than %d levels or more than %d children", name,
                          TFOS__ARROW_DEPTH, TFOS__ARROW_FIELDS_LIMIT);
    if (schema->dictionary)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: it is encoded by a dictionary: decode it first", name);
    TFOS__TRY(put_block(body, schema->format, strlen(schema->format), err));
    TFOS__TRY(put_block(body, name, strlen(name), err));
    TFOS__TRY(put_block(body, schema->metadata,
                        tfos__arrow_metadata_size(schema->metadata, SIZE_MAX), err));
    TFOS__TRY(tfos__buffer_append(body, &schema->flags, sizeof(schema->flags), err));
    TFOS__TRY(tfos__buffer_append(body, &child_count, sizeof(child_count), err));
    for (int64_t i = 0; i < schema->n_children; i++)
        TFOS__TRY(encode_node(schema->children[i], body, depth + 1, err));
    return TFOS_OK;
}

enum tfos_status tfos__arrow_schema_encode(const struct ArrowSchema *schema,
                                           struct tfos__buffer *body, struct tfos_error *err)
{
    body->begin = body->end = 0;
    TFOS__TRY(tfos__arrow_check_struct(schema, TFOS_TYPE_NAMES_SPARK, err));
    return encode_node(schema, body, 0, err);
}

struct cursor {
    const uint8_t *body;
    size_t size, position;
    int64_t node_count;
};

static bool take(struct cursor *cursor, void *out, size_t size)
{
    if (cursor->size - cursor->position < size)
        return false;
    memcpy(out, cursor->body + cursor->position, size);
    cursor->position += size;
    return true;
}

/// A size and its bytes; no data for the size that means none.
static bool decode_block(struct cursor *cursor, struct tfos_view *block)
{
    uint32_t size = 0;
    *block = (struct tfos_view){NULL, 0};
    if (!take(cursor, &size, sizeof(size)))
        return false;
    if (size == NO_METADATA)
        return true;
    if (cursor->size - cursor->position < size)
        return false;
    *block = (struct tfos_view){cursor->body + cursor->position, size};
    cursor->position += size;
    return true;
}

static bool decode_text(struct cursor *cursor, struct tfos_view *text)
{
    return decode_block(cursor, text) && text->data && !memchr(text->data, '\0', text->size);
}

static bool decode_parts(struct cursor *cursor, struct parts *parts)
{
    uint32_t child_count = 0;
    if (!decode_text(cursor, &parts->format) || !decode_text(cursor, &parts->name) ||
        !decode_block(cursor, &parts->metadata) ||
        !take(cursor, &parts->flags, sizeof(parts->flags)) ||
        !take(cursor, &child_count, sizeof(child_count)))
        return false;
    parts->child_count = child_count;
    cursor->node_count += child_count;
    return tfos__arrow_metadata_size(parts->metadata.data, parts->metadata.size) ==
               parts->metadata.size &&
           child_count <= (cursor->size - cursor->position) / LEAST_NODE &&
           cursor->node_count <= TFOS__ARROW_FIELDS_LIMIT;
}

static enum tfos_status decode_node(struct cursor *cursor, struct ArrowSchema *schema, int depth,
                                    struct tfos_error *err)
{
    struct parts parts;
    if (depth > TFOS__ARROW_DEPTH || !decode_parts(cursor, &parts))
        return tfos__fail(err, TFOS_CORRUPT, "a schema of %zu bytes is broken at byte %zu",
                          cursor->size, cursor->position);
    TFOS__TRY(make_node(schema, &parts, err));
    for (int64_t i = 0; i < schema->n_children; i++)
        TFOS__TRY(decode_node(cursor, schema->children[i], depth + 1, err));
    return TFOS_OK;
}

enum tfos_status tfos__arrow_schema_decode(const uint8_t *body, size_t size,
                                           struct ArrowSchema *schema, struct tfos_error *err)
{
    struct ArrowSchema made = {0};
    // Nobody can change the private copy between a check and a use.
    uint8_t *copy = tfos__alloc(size, 1);

    if (!copy)
        return tfos__no_memory(err, "arrow", "a schema");
    memcpy(copy, body, size);
    struct cursor cursor = {.body = copy, .size = size};
    enum tfos_status status = decode_node(&cursor, &made, 0, err);
    if (status == TFOS_OK && (cursor.position != size || !tfos__arrow_is_struct(&made)))
        status =
            tfos__fail(err, TFOS_CORRUPT,
                       "a schema of %zu bytes does not end with its columns or is no struct", size);
    tfos__free(copy);
    return finish(status, &made, schema);
}
