// SPDX-License-Identifier: Apache-2.0
// Names of types are Spark's, and numpy's of what Spark has not, as answers.py has them: messages
// are the same on both ways of an inference.
#include "spark/result_type.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

static const struct {
    char code;
    uint8_t element_size; ///< 0: cannot be declared
    const char *name;
} kinds[] = {
    {'b', 1, "boolean"},  {'B', 0, "boolean"}, {'c', 1, "tinyint"}, {'C', 0, "uint8"},
    {'s', 2, "smallint"}, {'S', 0, "uint16"},  {'i', 4, "int"},     {'I', 0, "uint32"},
    {'l', 8, "bigint"},   {'L', 0, "uint64"},  {'e', 0, "float16"}, {'f', 4, "float"},
    {'g', 8, "double"},   {'u', 8, "string"},  {'U', 0, "string"},  {'z', 8, "binary"},
    {'Z', 0, "binary"},   {'n', 0, "void"},
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

enum tfos_status tfos__result_type_init(struct tfos__result_type *type,
                                        const struct ArrowSchema *schema, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];

    *type = (struct tfos__result_type){.name = schema->name};
    for (;; schema = schema->children[0]) {
        if (!(schema->flags & ARROW_FLAG_NULLABLE))
            type->required |= UINT64_C(1) << type->depth;
        if (strcmp(schema->format, "+l") != 0 || type->depth == TFOS__RESULT_DEPTH)
            break;
        type->depth++;
    }
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (schema->format[0] == kinds[i].code && schema->format[1] == '\0') {
            type->code = kinds[i].code;
            type->element_size = kinds[i].element_size;
        }
    if (type->element_size == 0)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "inference: column '%s': results of its type, %s, are made by Python: "
                          "inference(via=\"arrow\")",
                          type->name,
                          tfos_arrow_type_text(schema, TFOS_TYPE_NAMES_SPARK, text, sizeof text));
    return TFOS_OK;
}

const char *tfos__result_type_say(char name[TFOS__RESULT_NAME], char code, int depth)
{
    size_t used = 0;

    for (int i = 0; i < depth; i++)
        used += (size_t)snprintf(name + used, TFOS__RESULT_NAME - used, "array<");
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (kinds[i].code == code)
            used += (size_t)snprintf(name + used, TFOS__RESULT_NAME - used, "%s", kinds[i].name);
    for (int i = 0; i < depth; i++)
        used += (size_t)snprintf(name + used, TFOS__RESULT_NAME - used, ">");
    return name;
}
