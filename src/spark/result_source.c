// SPDX-License-Identifier: Apache-2.0
// A column's form is in its Arrow type and in what the packer notes beside it: that bytes are
// booleans, that a list of numbers is an array of several dimensions. Lists of one length are read
// by multiplication, so that their children must be as long as that: feed/batch_decode.c checks it.
#include "spark/result_source.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

#define NOTE_SIZE 1024
#define ELSEWHERE "give numbers, text, bytes or arrays of them, or use inference(via=\"arrow\")"

/// The note of a column: "array f4 28 28".
struct note {
    char text[NOTE_SIZE]; ///< words divided by blanks
    const char *kind;     ///< "f4"; "" without one
    const char *shape;    ///< "28 28"; "" without one
};

static void read_note(struct note *note, const char *metadata)
{
    note->kind = note->shape = "";
    if (!tfos_arrow_metadata_find(metadata, "tfos.value", note->text, sizeof note->text))
        note->text[0] = '\0';
    char *blank = strchr(note->text, ' ');
    if (!blank)
        return;
    *blank = '\0';
    note->kind = blank + 1;
    blank = strchr(blank + 1, ' ');
    if (!blank)
        return;
    *blank = '\0';
    note->shape = blank + 1;
}

static bool is_one_of(const char *text, const char *first, const char *second)
{
    return strcmp(text, first) == 0 || strcmp(text, second) == 0;
}

static enum tfos_status refuse(const char *name, const char *what, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_UNSUPPORTED, "inference: result column '%s': %s; " ELSEWHERE, name,
                      what);
}

static enum tfos_status add_level(struct tfos__result_source *source, const char *name,
                                  const struct ArrowArray *array, struct tfos__arrow_type type,
                                  struct tfos_error *err)
{
    if (source->depth == TFOS__RESULT_DEPTH)
        return refuse(name, "it has more than 32 levels of lists", err);
    source->levels[source->depth++] = (struct tfos__result_level){array, type};
    return TFOS_OK;
}

/// Lists of `total` values each, which are an array of the noted shape.
static enum tfos_status add_dimensions(struct tfos__result_source *source, const char *name,
                                       const char *shape, const struct ArrowArray *array,
                                       int64_t total, struct tfos_error *err)
{
    int64_t product = 1;

    while (*shape) {
        char *end = NULL;
        int64_t size = strtoll(shape, &end, 10);
        if (end == shape || size < 0 || __builtin_mul_overflow(product, size, &product))
            return tfos__fail(err, TFOS_CORRUPT, "inference: result column '%s': its shape ends %s",
                              name, shape);
        TFOS__TRY(add_level(source, name, array, tfos__arrow_fixed_list_type(size), err));
        array = NULL;
        shape = end + strspn(end, " ");
    }
    if (product != total)
        return tfos__fail(err, TFOS_CORRUPT,
                          "inference: result column '%s': arrays of %lld values in lists of %lld",
                          name, (long long)product, (long long)total);
    return TFOS_OK;
}

/// Steps down the lists to the values.
static enum tfos_status add_lists(struct tfos__result_source *source,
                                  const struct ArrowSchema **schema, const struct ArrowArray *array,
                                  const char *name, const char *shape, struct tfos_error *err)
{
    struct tfos__arrow_type *type = &source->type;

    for (;; *schema = (*schema)->children[0], array = array->children[0], shape = "") {
        if (tfos__arrow_type_read(type, *schema, NULL) < 0)
            return refuse(name, "values of such a type are not read here", err);
        source->values = array;
        if (type->kind != TFOS__ARROW_LIST)
            return TFOS_OK;
        TFOS__TRY(*shape && type->layout == TFOS__ARROW_FIXED_LIST
                      ? add_dimensions(source, name, shape, array, type->list_size, err)
                      : add_level(source, name, array, *type, err));
    }
}

static enum tfos_status check_type(const struct tfos__arrow_type *type, const char *name,
                                   struct tfos_error *err)
{
    switch (type->kind) {
    case TFOS__ARROW_BOOL:
    case TFOS__ARROW_INT:
    case TFOS__ARROW_UINT:
    case TFOS__ARROW_FLOAT:
    case TFOS__ARROW_TEXT:
        return TFOS_OK;
    case TFOS__ARROW_MAP:
    case TFOS__ARROW_STRUCT:
        return refuse(name, "structs and maps are not read here", err);
    default:
        return type->kind == TFOS__ARROW_BINARY && type->layout == TFOS__ARROW_VARIABLE
                   ? TFOS_OK
                   : refuse(name, "values of such a type are not read here", err);
    }
}

enum tfos_status tfos__result_source_init(struct tfos__result_source *source,
                                          const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, const char *name,
                                          struct tfos_error *err)
{
    struct note note, leaf;

    source->depth = 0;
    read_note(&note, schema->metadata);
    if (strcmp(note.text, "pickle") == 0)
        return refuse(name, "its values are objects that only Python can read", err);
    if (is_one_of(note.kind, "c8", "c16"))
        return tfos__fail(err, TFOS_INVALID,
                          "inference: result column '%s': complex numbers cannot be cast: Spark "
                          "has none: give their real and imaginary parts as two columns",
                          name);
    TFOS__TRY(add_lists(source, &schema, array, name, note.shape, err));
    TFOS__TRY(check_type(&source->type, name, err));
    read_note(&leaf, schema->metadata);
    source->is_boolean = tfos__arrow_type_is(&source->type, TFOS__ARROW_UINT, 8) &&
                         (strcmp(note.text, "bool") == 0 || is_one_of(note.kind, "bool", "b1"));
    if (strcmp(note.kind, "null") == 0 || strcmp(leaf.text, "null") == 0)
        source->type = tfos__arrow_type_of(TFOS__ARROW_NULL, 0, 0);
    return TFOS_OK;
}

const char *tfos__result_source_say(char name[TFOS__RESULT_NAME],
                                    const struct tfos__result_source *source, int depth)
{
    const struct tfos__arrow_type boolean = tfos__arrow_type_of(TFOS__ARROW_BOOL, 1, 0);

    return tfos__result_type_say(name, source->is_boolean ? &boolean : &source->type, depth);
}
