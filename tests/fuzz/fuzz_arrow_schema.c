// SPDX-License-Identifier: Apache-2.0
// Any bytes as a schema: they become a whole tree that is written as the same bytes again, or
// nothing. Its types are read, written and made columns of, as far as they are known.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ArrowSchema *schema)
{
    struct tfos__arrow_type type;
    char text[TFOS__ARROW_TEXT_SIZE], name[16];

    assert(schema->release && schema->name && schema->format);
    assert((schema->n_children > 0) == (schema->children != NULL));
    tfos_arrow_metadata_find(schema->metadata, "tfos.value", name, sizeof(name));
    if (tfos__arrow_type_read(&type, schema, NULL) == TFOS_OK) {
        struct ArrowSchema again = *schema;
        again.format = tfos__arrow_type_format(&type, text);
        if (strlen(schema->format) < sizeof(text) - 1) { // a time zone may be longer
            struct tfos__arrow_type same;
            assert(tfos__arrow_type_read(&same, &again, NULL) == TFOS_OK);
            assert(tfos__arrow_type_equals(&type, &same));
        }
        assert(tfos__arrow_type_name(&type, TFOS_TYPE_NAMES_ARROW, text)[0]);
    }
    for (int64_t i = 0; i < schema->n_children; i++)
        check(schema->children[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tfos__arrow_builder builder = {0};
    struct tfos__buffer bytes = {0};
    struct ArrowSchema schema = {0}, copy;
    struct tfos_error err = {0};

    if (tfos__arrow_schema_decode(data, size, &schema, &err) != TFOS_OK) {
        assert(!schema.release && err.message[0]);
        return 0;
    }
    check(&schema);
    assert(tfos__arrow_schema_encode(&schema, &bytes, NULL) == TFOS_OK);
    assert(tfos__buffer_size(&bytes) == size && memcmp(bytes.data, data, size) == 0);
    tfos__buffer_clear(&bytes);
    assert(tfos_arrow_schema_copy(&schema, &copy, NULL) == TFOS_OK);
    assert(tfos__arrow_schema_equals(&schema, &copy));
    copy.release(&copy);
    if (tfos__arrow_builder_init(&builder, &schema, NULL) == TFOS_OK) {
        assert(tfos__arrow_builder_show(&builder, NULL) == TFOS_OK);
    }
    tfos__arrow_builder_clear(&builder);
    schema.release(&schema);
    return 0;
}
