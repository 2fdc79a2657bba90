// SPDX-License-Identifier: Apache-2.0
// A column's form is in its Arrow format and in what the packer notes beside it: that bytes are
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
                                  struct tfos__result_level level, struct tfos_error *err)
{
    if (source->depth == TFOS__RESULT_DEPTH)
        return refuse(name, "it has more than 32 levels of lists", err);
    source->levels[source->depth++] = level;
    return TFOS_OK;
}

/// Lists of `total` values each, which are an array of the noted shape.
static enum tfos_status add_dimensions(struct tfos__result_source *source, const char *name,
                                       const char *shape, struct tfos__result_level level,
                                       struct tfos_error *err)
{
    int64_t total = level.count, product = 1;

    while (*shape) {
        char *end = NULL;
        level.count = strtoll(shape, &end, 10);
        if (end == shape || level.count < 0 ||
            __builtin_mul_overflow(product, level.count, &product))
            return tfos__fail(err, TFOS_CORRUPT, "inference: result column '%s': its shape ends %s",
                              name, shape);
        TFOS__TRY(add_level(source, name, level, err));
        level = (struct tfos__result_level){0};
        shape = end + strspn(end, " ");
    }
    if (product != total)
        return tfos__fail(err, TFOS_CORRUPT,
                          "inference: result column '%s': arrays of %lld values in lists of %lld",
                          name, (long long)product, (long long)total);
    return TFOS_OK;
}

static const uint8_t *validity_of(const struct ArrowArray *array)
{
    return array->null_count == 0 || array->n_buffers == 0 ? NULL : array->buffers[0];
}

/// Steps down the lists to the values.
static enum tfos_status add_lists(struct tfos__result_source *source,
                                  const struct ArrowSchema **schema,
                                  const struct ArrowArray **array, const char *name,
                                  const char *shape, struct tfos_error *err)
{
    while ((*schema)->format[0] == '+') {
        const char *format = (*schema)->format;
        struct tfos__result_level level = {.validity = validity_of(*array),
                                           .offset = (*array)->offset};
        if (strncmp(format, "+w:", 3) == 0)
            level.count = strtoll(format + 3, NULL, 10);
        else if (is_one_of(format, "+l", "+L"))
            level.ends = (*array)->buffers[1];
        else
            return refuse(name, "structs and maps are not read here", err);
        level.is_wide = format[1] == 'L';
        TFOS__TRY(*shape && !level.ends ? add_dimensions(source, name, shape, level, err)
                                        : add_level(source, name, level, err));
        shape = "";
        *schema = (*schema)->children[0];
        *array = (*array)->children[0];
    }
    return TFOS_OK;
}

enum tfos_status tfos__result_source_init(struct tfos__result_source *source,
                                          const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, const char *name,
                                          struct tfos_error *err)
{
    struct note note;

    source->depth = 0;
    read_note(&note, schema->metadata);
    if (strcmp(note.text, "pickle") == 0)
        return refuse(name, "its values are objects that only Python can read", err);
    if (is_one_of(note.kind, "c8", "c16"))
        return tfos__fail(err, TFOS_INVALID,
                          "inference: result column '%s': complex numbers cannot be cast: Spark "
                          "has none: give their real and imaginary parts as two columns",
                          name);
    TFOS__TRY(add_lists(source, &schema, &array, name, note.shape, err));
    const char *format = schema->format;
    if (!strchr("bcCsSiIlLefguUzZ", format[0]) || format[1] != '\0')
        return refuse(name, "values of such a type are not read here", err);
    source->code = format[0];
    struct note leaf;
    read_note(&leaf, schema->metadata);
    if (strcmp(note.kind, "null") == 0 || strcmp(leaf.text, "null") == 0)
        source->code = TFOS__RESULT_NOTHING;
    else if (format[0] == 'C' &&
             (strcmp(note.text, "bool") == 0 || is_one_of(note.kind, "bool", "b1")))
        source->code = TFOS__RESULT_BOOLEAN;
    source->levels[source->depth] =
        (struct tfos__result_level){.validity = validity_of(array), .offset = array->offset};
    bool is_bytes = tfos__result_is_bytes(source->code);
    if (is_bytes) {
        source->levels[source->depth].ends = array->buffers[1];
        source->levels[source->depth].is_wide = source->code == 'U' || source->code == 'Z';
    }
    source->data = array->buffers[is_bytes ? 2 : 1];
    return TFOS_OK;
}
