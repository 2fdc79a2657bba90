// SPDX-License-Identifier: Apache-2.0
// Names of types are Spark's, and numpy's for types that Spark has not, as answers.py has them:
// messages are the same on both ways of an inference.
#include "unsafe_row/result_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"

#define NOTE_SIZE 1024
#define ELSEWHERE "give numbers, text, bytes or arrays of them, or use inference(via=\"arrow\")"

/// The largest integers up to which a type of floating-point numbers has all.
#define FLOAT_INTEGERS (INT64_C(1) << 24)
#define DOUBLE_INTEGERS (INT64_C(1) << 53)

// ---- declared types

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

enum tfos_status tfos__unsafe_row_result_type_init(struct tfos__unsafe_row_result_type *type,
                                                   const struct ArrowSchema *schema,
                                                   struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct ArrowSchema *whole = schema;
    bool is_list = true;
    enum tfos_status status = TFOS_OK;
    *type = (struct tfos__unsafe_row_result_type){.name = schema->name};
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
                          tfos_arrow_type_text(whole, TFOS_TYPE_NAMES_SPARK, text, sizeof(text)));
    return TFOS_OK;
}

const char *tfos__unsafe_row_result_type_name(char name[TFOS__RESULT_NAME],
                                              const struct tfos__arrow_type *value, int depth)
{
    return tfos__arrow_lists_text(value, depth, TFOS_TYPE_NAMES_SPARK, name, TFOS__RESULT_NAME);
}

// ---- columns of a batch
//
// The form of a column is in its Arrow type and in what the packer notes beside it: that bytes are
// booleans, that a list of numbers is an array of several dimensions. Lists of one length are read
// by multiplication, so their children must be as long as that: feed/batch_decoder.c checks it.

/// The note of a column: "array f4 28 28".
struct note {
    char text[NOTE_SIZE]; ///< words divided by blanks
    const char *kind;     ///< "f4"; "" without one
    const char *shape;    ///< "28 28"; "" without one
};

static void read_note(struct note *note, const char *metadata)
{
    note->kind = note->shape = "";
    if (!tfos_arrow_metadata_find(metadata, "tfos.value", note->text, sizeof(note->text)))
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

static enum tfos_status add_level(struct tfos__unsafe_row_source *source, const char *name,
                                  const struct ArrowArray *array, struct tfos__arrow_type type,
                                  struct tfos_error *err)
{
    if (source->depth == TFOS__RESULT_DEPTH)
        return refuse(name, "it has more than 32 levels of lists", err);
    source->levels[source->depth++] = (struct tfos__unsafe_row_level){array, type};
    return TFOS_OK;
}

/// Lists of `total` values each, which are an array of the noted shape.
static enum tfos_status add_dimensions(struct tfos__unsafe_row_source *source, const char *name,
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
static enum tfos_status add_lists(struct tfos__unsafe_row_source *source,
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

enum tfos_status tfos__unsafe_row_source_init(struct tfos__unsafe_row_source *source,
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

const char *tfos__unsafe_row_source_type_name(char name[TFOS__RESULT_NAME],
                                              const struct tfos__unsafe_row_source *source,
                                              int depth)
{
    const struct tfos__arrow_type boolean = tfos__arrow_type_of(TFOS__ARROW_BOOL, 1, 0);
    return tfos__unsafe_row_result_type_name(name, source->is_boolean ? &boolean : &source->type,
                                             depth);
}

// ---- casts
//
// Values of the same type are copied. Others go through 64-bit integers or doubles, 64 at a time.
// The rules are those of pyarrow's safe casts.

union numbers {
    int64_t integers[TFOS__ROW_CHUNK];
    double reals[TFOS__ROW_CHUNK];
};

static bool is_real(const struct tfos__arrow_type *type)
{
    return type->kind == TFOS__ARROW_FLOAT;
}

/// Reads up to 64 values. A null has no value: whatever lies in its place is not looked at.
/// Integers beyond 63 bits come out negative.
static void load(const struct tfos__unsafe_row_source *source, int64_t first, int64_t count,
                 union numbers *numbers)
{
    const struct tfos__arrow_type *type = &source->type;
    const struct ArrowArray *array = source->values;
    if (is_real(type))
        for (int64_t i = 0; i < count; i++)
            numbers->reals[i] = tfos__arrow_real(type, array, first + i);
    else
        for (int64_t i = 0; i < count; i++)
            numbers->integers[i] = tfos__arrow_integer(type, array, first + i);
    for (int64_t i = 0; tfos__arrow_has_nulls(array) && i < count; i++)
        if (tfos__arrow_is_null(array, first + i))
            numbers->integers[i] = 0;
}

static enum tfos_status check_range(const int64_t *integers, int64_t count, int64_t least,
                                    int64_t most, struct tfos_error *err)
{
    int64_t smallest = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        smallest = integers[i] < smallest ? integers[i] : smallest;
        largest = integers[i] > largest ? integers[i] : largest;
    }
    if (smallest < least || largest > most)
        return tfos__fail(err, TFOS_INVALID, "Integer value %lld not in range: %lld to %lld",
                          (long long)(smallest < least ? smallest : largest), (long long)least,
                          (long long)most);
    return TFOS_OK;
}

/// Cuts nothing off: what is no integer of 64 bits is refused.
static enum tfos_status to_integers(union numbers *numbers, int64_t count,
                                    const struct tfos__arrow_type *type, struct tfos_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        double real = numbers->reals[i];
        // The bounds are powers of 2, which a double has. NaN is in no range.
        bool is_integer = real >= -0x1p63 && real < 0x1p63 && (double)(int64_t)real == real;
        if (!is_integer) {
            char name[TFOS__RESULT_NAME], value[TFOS__NUMBER_TEXT];
            bool is_float = (double)(float)real == real;
            return tfos__fail(err, TFOS_INVALID, "Float value %s was truncated converting to %s",
                              is_float ? tfos__float_print((float)real, value)
                                       : tfos__number_print(real, value),
                              tfos__unsafe_row_result_type_name(name, type, 0));
        }
        numbers->integers[i] = (int64_t)real;
    }
    return TFOS_OK;
}

static enum tfos_status to_reals(union numbers *numbers, int64_t count, int64_t width,
                                 struct tfos_error *err)
{
    int64_t most = width == 32 ? FLOAT_INTEGERS : DOUBLE_INTEGERS;
    TFOS__TRY(check_range(numbers->integers, count, -most, most, err));
    for (int64_t i = 0; i < count; i++)
        numbers->reals[i] = (double)numbers->integers[i];
    return TFOS_OK;
}

#define STORE(type, in)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                            \
        ((type *)to)[i] = (type)numbers->in[i];                                                    \
    break

static enum tfos_status store_integers(const union numbers *numbers, int64_t count, int64_t width,
                                       void *to, struct tfos_error *err)
{
    switch (width) {
    case 8:
        TFOS__TRY(check_range(numbers->integers, count, INT8_MIN, INT8_MAX, err));
        STORE(int8_t, integers);
    case 16:
        TFOS__TRY(check_range(numbers->integers, count, INT16_MIN, INT16_MAX, err));
        STORE(int16_t, integers);
    case 32:
        TFOS__TRY(check_range(numbers->integers, count, INT32_MIN, INT32_MAX, err));
        STORE(int32_t, integers);
    default:
        STORE(int64_t, integers);
    }
    return TFOS_OK;
}

static void store_truths(const union numbers *numbers, int64_t count, bool are_reals, uint8_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = are_reals ? numbers->reals[i] != 0 : numbers->integers[i] != 0;
}

static enum tfos_status store(union numbers *numbers, int64_t count, bool are_reals,
                              const struct tfos__arrow_type *type, void *to, struct tfos_error *err)
{
    if (type->kind == TFOS__ARROW_BOOL) {
        store_truths(numbers, count, are_reals, to);
        return TFOS_OK;
    }
    if (!is_real(type)) {
        if (are_reals)
            TFOS__TRY(to_integers(numbers, count, type, err));
        return store_integers(numbers, count, type->width, to, err);
    }
    if (!are_reals)
        TFOS__TRY(to_reals(numbers, count, type->width, err));
    switch (type->width) {
    case 32:
        STORE(float, reals);
    default:
        STORE(double, reals);
    }
    return TFOS_OK;
}

static enum tfos_status convert_chunk(const struct tfos__unsafe_row_source *source, int64_t first,
                                      int64_t count, const struct tfos__arrow_type *type, void *to,
                                      struct tfos_error *err)
{
    union numbers numbers;
    load(source, first, count, &numbers);
    // Only here can a negative integer be too large a one.
    if (tfos__arrow_type_is(&source->type, TFOS__ARROW_UINT, 64) && type->kind != TFOS__ARROW_BOOL)
        TFOS__TRY(check_range(numbers.integers, count, 0, INT64_MAX, err));
    return store(&numbers, count, is_real(&source->type), type, to, err);
}

enum tfos_status tfos__unsafe_row_source_cast(const struct tfos__unsafe_row_source *source,
                                              int64_t first, int64_t count,
                                              const struct tfos__unsafe_row_result_type *type,
                                              void *to, struct tfos_error *err)
{
    size_t width = type->element_size;
    uint8_t *next = to;
    if (source->type.kind == TFOS__ARROW_NULL) {
        memset(to, 0, (size_t)count * width);
    } else if (tfos__arrow_type_equals(&source->type, &type->value) &&
               type->value.kind != TFOS__ARROW_BOOL && !tfos__unsafe_row_source_has_nulls(source)) {
        if (count > 0)
            memcpy(to, tfos__arrow_value(&source->type, source->values, first),
                   (size_t)count * width);
    } else {
        for (; count > 0;
             first += TFOS__ROW_CHUNK, count -= TFOS__ROW_CHUNK, next += TFOS__ROW_CHUNK * width)
            TFOS__TRY(convert_chunk(source, first,
                                    count < TFOS__ROW_CHUNK ? count : TFOS__ROW_CHUNK, &type->value,
                                    next, err));
    }
    return TFOS_OK;
}
