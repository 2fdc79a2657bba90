// SPDX-License-Identifier: Apache-2.0
// Invariant: what write() and arrow() give, read() turns into an equal type.
#include "value_type.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [TFOS__VALUE_NULL] = "null",     [TFOS__VALUE_BOOL] = "bool",     [TFOS__VALUE_INT] = "int",
    [TFOS__VALUE_FLOAT] = "float",   [TFOS__VALUE_TEXT] = "text",     [TFOS__VALUE_BYTES] = "bytes",
    [TFOS__VALUE_OPAQUE] = "pickle", [TFOS__VALUE_SCALAR] = "scalar", [TFOS__VALUE_LIST] = "list",
    [TFOS__VALUE_TUPLE] = "tuple",   [TFOS__VALUE_ARRAY] = "array",
};

#define DTYPE_NAME_SIZE 32

#define KIND_COUNT (sizeof(kind_names) / sizeof(kind_names[0]))

/// What Python users call them.
static const char *const spoken_names[KIND_COUNT] = {
    [TFOS__VALUE_NULL] = "None",      [TFOS__VALUE_BOOL] = "bool",
    [TFOS__VALUE_INT] = "int",        [TFOS__VALUE_FLOAT] = "float",
    [TFOS__VALUE_TEXT] = "str",       [TFOS__VALUE_BYTES] = "bytes",
    [TFOS__VALUE_OPAQUE] = "objects", [TFOS__VALUE_SCALAR] = "numpy scalar",
    [TFOS__VALUE_LIST] = "list",      [TFOS__VALUE_TUPLE] = "tuple",
    [TFOS__VALUE_ARRAY] = "array",
};

bool tfos__py_value_type_is_sequence(const struct tfos__py_value_type *type)
{
    return type->kind >= TFOS__VALUE_LIST;
}

static bool is_list(const struct tfos__py_value_type *type)
{
    return type->kind == TFOS__VALUE_LIST || type->kind == TFOS__VALUE_TUPLE;
}

/// What one element is.
static enum tfos__py_value_kind element_kind(const struct tfos__py_value_type *type)
{
    return is_list(type) ? type->item : type->kind;
}

/// Whether elements are numpy's.
static bool has_dtype(const struct tfos__py_value_type *type)
{
    enum tfos__py_value_kind element = element_kind(type);

    return element == TFOS__VALUE_SCALAR || element == TFOS__VALUE_ARRAY;
}

bool tfos__py_value_type_is_moment(const struct tfos__py_value_type *type)
{
    return type->letter == 'M' || type->letter == 'm';
}

int64_t tfos__py_value_type_item_count(const struct tfos__py_value_type *type)
{
    int64_t count = 1;

    if (!tfos__py_value_type_is_sequence(type))
        return 1;
    if (!type->is_fixed)
        return 0;
    for (int i = 0; i < type->dimension_count; i++)
        count *= type->shape[i];
    return count;
}

int tfos__py_value_type_width(const struct tfos__py_value_type *type)
{
    struct tfos__arrow_type arrow = tfos__py_value_type_item_arrow(type);

    return arrow.layout == TFOS__ARROW_FIXED ? (int)(arrow.width / 8) : 0;
}

bool tfos__py_value_type_is_numeric(const struct tfos__py_value_type *type)
{
    enum tfos__py_value_kind element = element_kind(type);

    if (tfos__py_value_type_is_sequence(type) && !type->is_fixed)
        return false;
    return has_dtype(type) || (element >= TFOS__VALUE_BOOL && element <= TFOS__VALUE_FLOAT);
}

void tfos__py_value_type_dtype(const struct tfos__py_value_type *type, char text[8])
{
    switch (element_kind(type)) {
    case TFOS__VALUE_BOOL:
        snprintf(text, 8, "b1");
        return;
    case TFOS__VALUE_INT:
        snprintf(text, 8, "i8");
        return;
    case TFOS__VALUE_FLOAT:
        snprintf(text, 8, "f8");
        return;
    default:
        assert(has_dtype(type));
        if (tfos__py_value_type_is_moment(type))
            snprintf(text, 8, strchr("mun", type->unit) ? "%c8[%cs]" : "%c8[%c]", type->letter,
                     type->unit);
        else
            snprintf(text, 8, "%c%d", type->letter, type->itemsize);
    }
}

bool tfos__py_value_type_read_dtype(const char *text, struct tfos__py_value_type *type)
{
    static const char *const units[] = {"[D]", "[s]", "[ms]", "[us]", "[ns]"};
    char *end = NULL;
    long size = 0;

    if (*text == '\0' || !strchr("biufcMm", *text) || text[1] < '0' || text[1] > '9')
        return false;
    size = strtol(text + 1, &end, 10);
    type->letter = *text;
    type->itemsize = (int)size;
    type->unit = 0;
    if (!tfos__py_value_type_is_moment(type))
        return *end == '\0' && size >= 1 && size <= 32;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (size == 8 && strcmp(end, units[i]) == 0)
            type->unit = end[1];
    }
    return type->unit != 0;
}

struct tfos__py_value_type tfos__py_value_type_elements(const struct tfos__py_value_type *type)
{
    struct tfos__py_value_type elements = {.kind = TFOS__VALUE_SCALAR};
    enum tfos__py_value_kind element = element_kind(type);
    char text[8];

    if (has_dtype(type) || (element >= TFOS__VALUE_BOOL && element <= TFOS__VALUE_FLOAT)) {
        tfos__py_value_type_dtype(type, text);
        tfos__py_value_type_read_dtype(text, &elements);
    }
    return elements;
}

/// Whether elements are of one kind, and numpy's of one dtype.
static bool has_elements(const struct tfos__py_value_type *a, const struct tfos__py_value_type *b)
{
    return element_kind(a) == element_kind(b) &&
           (!has_dtype(a) ||
            (a->letter == b->letter && a->itemsize == b->itemsize && a->unit == b->unit));
}

bool tfos__py_value_type_equals(const struct tfos__py_value_type *a,
                                const struct tfos__py_value_type *b)
{
    if (a->kind != b->kind || !has_elements(a, b) || a->is_fixed != b->is_fixed)
        return false;
    return !a->is_fixed ||
           (a->dimension_count == b->dimension_count &&
            memcmp(a->shape, b->shape, (size_t)a->dimension_count * sizeof(a->shape[0])) == 0);
}

struct tfos__py_value_type tfos__py_value_type_widen(const struct tfos__py_value_type *a,
                                                     const struct tfos__py_value_type *b)
{
    struct tfos__py_value_type wide = *a;
    bool are_lists = a->kind == b->kind && is_list(a);

    if (tfos__py_value_type_equals(a, b) || b->kind == TFOS__VALUE_NULL)
        return wide;
    if (a->kind == TFOS__VALUE_NULL)
        return *b;
    if (are_lists && a->item == TFOS__VALUE_NULL)
        wide = *b;
    wide.is_fixed = false;
    if (are_lists &&
        (a->item == TFOS__VALUE_NULL || b->item == TFOS__VALUE_NULL || has_elements(a, b)))
        return wide;
    if (a->kind == TFOS__VALUE_ARRAY && b->kind == TFOS__VALUE_ARRAY && has_elements(a, b) &&
        a->dimension_count == 1 && b->dimension_count == 1)
        return wide;
    return (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
}

struct tfos__arrow_type tfos__py_value_type_plain_arrow(const struct tfos__py_value_type *type)
{
    int size = type->itemsize;
    bool is_number = size <= 8 && (size & (size - 1)) == 0;

    if (type->letter == 'b')
        return tfos__arrow_type_of(TFOS__ARROW_BOOL, 1, 0);
    if (type->letter == 'i' && is_number)
        return tfos__arrow_type_of(TFOS__ARROW_INT, 8 * size, 0);
    if (type->letter == 'u' && is_number)
        return tfos__arrow_type_of(TFOS__ARROW_UINT, 8 * size, 0);
    if (type->letter == 'f' && is_number && size > 1)
        return tfos__arrow_type_of(TFOS__ARROW_FLOAT, 8 * size, 0);
    if (type->letter == 'M')
        return type->unit == 'D' ? tfos__arrow_type_of(TFOS__ARROW_DATE, 32, 'D')
                                 : tfos__arrow_type_of(TFOS__ARROW_TIMESTAMP, 64, type->unit);
    if (type->letter == 'm' && type->unit != 'D')
        return tfos__arrow_type_of(TFOS__ARROW_DURATION, 64, type->unit);
    return (struct tfos__arrow_type){0};
}

/// numpy's elements as they are in memory.
static struct tfos__arrow_type memory_type(const struct tfos__py_value_type *type)
{
    struct tfos__arrow_type plain = tfos__py_value_type_plain_arrow(type);

    if (type->letter == 'b')
        return tfos__arrow_type_of(TFOS__ARROW_UINT, 8, 0);
    if (tfos__py_value_type_is_moment(type))
        return tfos__arrow_type_of(TFOS__ARROW_INT, 64, 0);
    return plain.kind != TFOS__ARROW_NULL ? plain : tfos__arrow_fixed_binary_type(type->itemsize);
}

struct tfos__arrow_type tfos__py_value_type_item_arrow(const struct tfos__py_value_type *type)
{
    switch (element_kind(type)) {
    case TFOS__VALUE_NULL:
    case TFOS__VALUE_BOOL:
        return tfos__arrow_type_of(TFOS__ARROW_UINT, 8, 0);
    case TFOS__VALUE_INT:
        return tfos__arrow_type_of(TFOS__ARROW_INT, 64, 0);
    case TFOS__VALUE_FLOAT:
        return tfos__arrow_type_of(TFOS__ARROW_FLOAT, 64, 0);
    case TFOS__VALUE_TEXT:
        return tfos__arrow_type_of(TFOS__ARROW_TEXT, 64, 0);
    case TFOS__VALUE_BYTES:
    case TFOS__VALUE_OPAQUE:
        return tfos__arrow_type_of(TFOS__ARROW_BINARY, 64, 0);
    default:
        return memory_type(type);
    }
}

struct tfos__arrow_type tfos__py_value_type_arrow(const struct tfos__py_value_type *type)
{
    if (!tfos__py_value_type_is_sequence(type))
        return tfos__py_value_type_item_arrow(type);
    return type->is_fixed ? tfos__arrow_fixed_list_type(tfos__py_value_type_item_count(type))
                          : tfos__arrow_type_of(TFOS__ARROW_LIST, 64, 0);
}

/// Appends " 28 28".
static void write_shape(const struct tfos__py_value_type *type, char *text, size_t size)
{
    for (int i = 0; i < type->dimension_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, " %" PRId64, type->shape[i]);
    }
}

void tfos__py_value_type_write(const struct tfos__py_value_type *type,
                               char text[TFOS__VALUE_TEXT_SIZE])
{
    const char *name = kind_names[type->kind];
    char dtype[8] = "";

    if (has_dtype(type))
        tfos__py_value_type_dtype(type, dtype);
    if (*dtype != '\0' || tfos__py_value_type_is_sequence(type)) {
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "%s %s", name,
                 *dtype != '\0' ? dtype : kind_names[type->item]);
        if (type->is_fixed)
            write_shape(type, text, TFOS__VALUE_TEXT_SIZE);
    } else {
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "%s", name);
    }
}

/// Takes the next word, up to a space or the end; NULL when there is none.
static const char *next_word(const char **text, char word[32])
{
    size_t size = strcspn(*text, " ");

    if (size == 0 || size >= 32)
        return NULL;
    memcpy(word, *text, size);
    word[size] = '\0';
    *text += size + ((*text)[size] == ' ');
    return word;
}

static bool read_kind(const char *word, enum tfos__py_value_kind *kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(word, kind_names[i]) == 0) {
            *kind = (enum tfos__py_value_kind)i;
            return true;
        }
    }
    return false;
}

static bool read_number(const char *word, int64_t *number)
{
    char *end = NULL;

    if (*word < '0' || *word > '9')
        return false;
    *number = strtoll(word, &end, 10);
    return *end == '\0' && *number <= INT64_MAX / 2;
}

static bool read_shape(const char *text, struct tfos__py_value_type *type)
{
    char word[32];
    int64_t product = 1;

    while (*text != '\0') {
        int64_t size = 0;
        if (type->dimension_count == TFOS__MAX_DIMENSIONS || !next_word(&text, word) ||
            !read_number(word, &size))
            return false;
        if (size > 0 && product > INT64_MAX / 32 / size)
            return false;
        product *= size;
        type->shape[type->dimension_count++] = size;
    }
    return true;
}

/// Whether write() and arrow() would have given this text and Arrow type for the type.
static bool is_written_so(const struct tfos__py_value_type *type, const char *text,
                          const struct tfos__arrow_type *arrow)
{
    struct tfos__arrow_type own = tfos__py_value_type_arrow(type);
    char own_text[TFOS__VALUE_TEXT_SIZE];

    if (is_list(type) && type->is_fixed &&
        (type->dimension_count != 1 || !tfos__py_value_type_is_numeric(type)))
        return false;
    tfos__py_value_type_write(type, own_text);
    return strcmp(own_text, text) == 0 && tfos__arrow_type_equals(&own, arrow);
}

/// The word behind the kind: what elements are.
static bool read_elements(const char *word, struct tfos__py_value_type *type)
{
    if (tfos__py_value_type_read_dtype(word, type)) {
        type->item = TFOS__VALUE_SCALAR;
        return true;
    }
    return is_list(type) && read_kind(word, &type->item) && type->item <= TFOS__VALUE_BYTES;
}

bool tfos__py_value_type_read(const char *text, const struct tfos__arrow_type *arrow,
                              struct tfos__py_value_type *type)
{
    struct tfos__py_value_type read = {0};
    const char *whole = text;
    char word[32];

    if (!next_word(&text, word) || !read_kind(word, &read.kind))
        return false;
    if ((read.kind >= TFOS__VALUE_SCALAR &&
         (!next_word(&text, word) || !read_elements(word, &read))) ||
        !read_shape(text, &read))
        return false;
    if (!is_list(&read))
        read.item = TFOS__VALUE_NULL;
    read.is_fixed = arrow->layout == TFOS__ARROW_FIXED_LIST;
    if (read.kind == TFOS__VALUE_ARRAY && !read.is_fixed)
        read.dimension_count = 1;
    if (!is_written_so(&read, whole, arrow))
        return false;
    *type = read;
    return true;
}

/// numpy's full name of the elements' dtype: "float32", "datetime64[us]".
static void write_dtype_name(const struct tfos__py_value_type *type, char text[DTYPE_NAME_SIZE])
{
    char code[8];
    const char *name = type->letter == 'b'   ? "bool"
                       : type->letter == 'i' ? "int"
                       : type->letter == 'u' ? "uint"
                       : type->letter == 'f' ? "float"
                       : type->letter == 'c' ? "complex"
                       : type->letter == 'M' ? "datetime64"
                                             : "timedelta64";

    tfos__py_value_type_dtype(type, code);
    if (tfos__py_value_type_is_moment(type))
        snprintf(text, DTYPE_NAME_SIZE, "%s%s", name, code + 2);
    else if (type->letter == 'b')
        snprintf(text, DTYPE_NAME_SIZE, "%s", name);
    else
        snprintf(text, DTYPE_NAME_SIZE, "%s%d", name, 8 * type->itemsize);
}

static void describe_array(const struct tfos__py_value_type *type,
                           const char dtype[DTYPE_NAME_SIZE], char text[TFOS__VALUE_TEXT_SIZE])
{
    size_t used = 0;

    if (!type->is_fixed) {
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "array of %s of varying length", dtype);
        return;
    }
    snprintf(text, TFOS__VALUE_TEXT_SIZE, "array of %s, shape (", dtype);
    for (int i = 0; i < type->dimension_count; i++) {
        used = strlen(text);
        snprintf(text + used, TFOS__VALUE_TEXT_SIZE - used, "%s%" PRId64, i > 0 ? ", " : "",
                 type->shape[i]);
    }
    used = strlen(text);
    snprintf(text + used, TFOS__VALUE_TEXT_SIZE - used, type->dimension_count == 1 ? ",)" : ")");
}

void tfos__py_value_type_describe(const struct tfos__py_value_type *type,
                                  char text[TFOS__VALUE_TEXT_SIZE])
{
    const char *name = spoken_names[type->kind], *element = spoken_names[element_kind(type)];
    const char *prefix = has_dtype(type) ? "numpy." : "";
    char dtype[DTYPE_NAME_SIZE] = "";

    if (has_dtype(type)) {
        write_dtype_name(type, dtype);
        element = dtype;
    }
    if (type->kind == TFOS__VALUE_ARRAY)
        describe_array(type, dtype, text);
    else if (!is_list(type))
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "%s%s", prefix, element);
    else if (type->is_fixed)
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "%s of %" PRId64 " %s%s", name, type->shape[0],
                 prefix, element);
    else
        snprintf(text, TFOS__VALUE_TEXT_SIZE, "%s of %s%s of varying length", name, prefix,
                 element);
}
