// SPDX-License-Identifier: Apache-2.0
// A schema's block holds the list of its children, the children, and its texts.
#include "base/arrow_schema.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define DEPTH_LIMIT 64

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
    if (schema->dictionary && schema->dictionary->release)
        schema->dictionary->release(schema->dictionary);
    tfos__free(schema->dictionary);
    tfos__free((char *)(uintptr_t)schema->metadata);
    tfos__free(schema->private_data);
    schema->release = NULL;
}

enum tfos_status tfos__schema_init(struct ArrowSchema *schema, const char *format, const char *name,
                                   int64_t child_count, struct tfos_error *err)
{
    size_t count = (size_t)child_count, format_size = strlen(format) + 1;
    size_t name_size = strlen(name) + 1;
    size_t child_size = sizeof(struct ArrowSchema *) + sizeof(struct ArrowSchema);
    // The children come first, for their alignment.
    char *block = tfos__alloc(count * child_size + format_size + name_size, 1);
    if (!block)
        return tfos__no_memory(err, "arrow", "a schema");
    struct ArrowSchema *children = (struct ArrowSchema *)(void *)block;
    struct ArrowSchema **list = (struct ArrowSchema **)(void *)(children + count);
    char *texts = (char *)(list + count);
    for (size_t i = 0; i < count; i++)
        list[i] = &children[i];
    memcpy(texts, format, format_size);
    memcpy(texts + format_size, name, name_size);
    *schema = (struct ArrowSchema){.format = texts,
                                   .name = texts + format_size,
                                   .flags = ARROW_FLAG_NULLABLE,
                                   .n_children = child_count,
                                   .children = count > 0 ? list : NULL,
                                   .release = release_schema,
                                   .private_data = block};
    return TFOS_OK;
}

static enum tfos_status copy(const struct ArrowSchema *schema, struct ArrowSchema *out, int depth,
                             struct tfos_error *err)
{
    size_t size = tfos__metadata_size(schema->metadata);
    if (depth > DEPTH_LIMIT)
        return tfos__fail(err, TFOS_UNSUPPORTED, "arrow: a schema of more than %d levels",
                          DEPTH_LIMIT);
    TFOS__TRY(tfos__schema_init(out, schema->format, schema->name ? schema->name : "",
                                schema->n_children, err));
    out->flags = schema->flags;
    if (schema->metadata) {
        char *metadata = tfos__alloc(size, 1);
        if (!metadata)
            return tfos__no_memory(err, "arrow", "a schema's metadata");
        memcpy(metadata, schema->metadata, size);
        out->metadata = metadata;
    }
    if (schema->dictionary) {
        out->dictionary = tfos__alloc(1, sizeof *out->dictionary);
        if (!out->dictionary)
            return tfos__no_memory(err, "arrow", "a schema's dictionary");
        TFOS__TRY(copy(schema->dictionary, out->dictionary, depth + 1, err));
    }
    for (int64_t i = 0; i < schema->n_children; i++)
        TFOS__TRY(copy(schema->children[i], out->children[i], depth + 1, err));
    return TFOS_OK;
}

enum tfos_status tfos_arrow_schema_copy(const struct ArrowSchema *schema, struct ArrowSchema *out,
                                        struct tfos_error *err)
{
    struct ArrowSchema made = {0};
    enum tfos_status status = copy(schema, &made, 1, err);
    if (status == TFOS_OK)
        *out = made;
    else if (made.release)
        made.release(&made);
    return status;
}
