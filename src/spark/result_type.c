// SPDX-License-Identifier: Apache-2.0
// Names of types are Spark's, and numpy's of what Spark has not, as answers.py has them: messages
// are the same on both ways of an inference.
#include "spark/result_type.h"

#include "base/fail.h"

/// Bytes of a value in one of Spark's arrays; 0: it cannot be declared.
static uint32_t element_size_of(const struct tfos__arrow_type *value)
{
    switch (value->kind) {
    case TFOS__ARROW_BOOL:
        return 1;
    case TFOS__ARROW_FLOAT:
        return value->width == 16 ? 0 : (uint32_t)value->width / 8;
    case TFOS__ARROW_INT:
        return (uint32_t)value->width / 8;
    case TFOS__ARROW_TEXT:
    case TFOS__ARROW_BINARY:
        return value->layout == TFOS__ARROW_VARIABLE && value->width == 32 ? 8 : 0;
    default:
        return 0;
    }
}

enum tfos_status tfos__result_type_init(struct tfos__result_type *type,
                                        const struct ArrowSchema *schema, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct ArrowSchema *whole = schema;
    bool is_list = true;
    enum tfos_status status = TFOS_OK;

    *type = (struct tfos__result_type){.name = schema->name};
    while (status == TFOS_OK && is_list) {
        if (!(schema->flags & ARROW_FLAG_NULLABLE))
            type->required |= UINT64_C(1) << type->depth;
        status = tfos__arrow_type_read(&type->value, schema, NULL);
        is_list = type->value.kind == TFOS__ARROW_LIST && type->value.width == 32 &&
                  type->depth < TFOS__RESULT_DEPTH;
        if (status == TFOS_OK && is_list) {
            schema = schema->children[0];
            type->depth++;
        }
    }
    type->element_size = status == TFOS_OK ? element_size_of(&type->value) : 0;
    if (type->element_size == 0)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "inference: column '%s': results of its type, %s, are made by Python: "
                          "inference(via=\"arrow\")",
                          type->name,
                          tfos_arrow_type_text(whole, TFOS_TYPE_NAMES_SPARK, text, sizeof text));
    return TFOS_OK;
}

const char *tfos__result_type_say(char name[TFOS__RESULT_NAME],
                                  const struct tfos__arrow_type *value, int depth)
{
    return tfos__arrow_lists_text(value, depth, TFOS_TYPE_NAMES_SPARK, name, TFOS__RESULT_NAME);
}
