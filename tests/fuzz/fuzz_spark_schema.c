// SPDX-License-Identifier: Apache-2.0
// Any text as the schema of a Spark DataFrame: it becomes a whole tree, or nothing.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/spark_schema.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ArrowSchema *node)
{
    assert(node->release && node->name && node->format[0]);
    assert((node->n_children > 0) == (node->children != NULL));
    for (int64_t i = 0; i < node->n_children; i++)
        check(node->children[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ArrowSchema schema = {0};
    struct tfos_error err = {0};
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    enum tfos_status status = tfos_spark_schema_parse(text, &schema, &err);
    free(text);
    if (status == TFOS_OK) {
        check(&schema);
        schema.release(&schema);
    } else
        assert(!schema.release && err.message[0]);
    return 0;
}
