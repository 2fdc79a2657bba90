// SPDX-License-Identifier: Apache-2.0
#include "feed/schema.h"

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

/// Takes over the tree, also on failure.
static enum tfos_status replace(struct tfos__feed_schema *schema, struct ArrowSchema *tree,
                                struct tfos_error *err)
{
    struct tfos__feed_schema made = {.tree = *tree};
    enum tfos_status status = TFOS_OK;

    made.fields = tfos__alloc(count_nodes(tree), sizeof *made.fields);
    status =
        made.fields ? add_field(&made, &made.tree, err) : tfos__no_memory(err, "feed", "a schema");
    tfos__feed_schema_clear(status == TFOS_OK ? schema : &made);
    if (status == TFOS_OK)
        *schema = made;
    return status;
}

static enum tfos_status pass_on(enum tfos_status status, struct tfos_error *err)
{
    if (status < 0)
        tfos__fail_prefix(err, "feed");
    return status;
}

enum tfos_status tfos__feed_schema_take(struct tfos__feed_schema *schema,
                                        const struct ArrowSchema *arrow, struct tfos_error *err)
{
    struct ArrowSchema tree;

    TFOS__TRY(tfos_arrow_schema_copy(arrow, &tree, err));
    return pass_on(replace(schema, &tree, err), err);
}

enum tfos_status tfos__feed_schema_decode(struct tfos__feed_schema *schema, const uint8_t *body,
                                          size_t size, struct tfos_error *err)
{
    struct ArrowSchema tree;
    enum tfos_status status = tfos__arrow_schema_decode(body, size, &tree, err);

    if (status == TFOS_OK)
        status = replace(schema, &tree, err);
    // What does not fit together is a peer's mistake.
    return pass_on(status == TFOS_INVALID ? TFOS_CORRUPT : status, err);
}

void tfos__feed_schema_clear(struct tfos__feed_schema *schema)
{
    tfos__arrow_schema_release(&schema->tree);
    tfos__free(schema->fields);
    *schema = (struct tfos__feed_schema){0};
}
