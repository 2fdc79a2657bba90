// SPDX-License-Identifier: Apache-2.0
// Arrow's format strings into columns:
// https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings
#include "plain.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *format;
    enum tfos__py_plain_kind kind;
    int width;
    char letter; // numpy's, of numbers
} formats[] = {
    {"b", TFOS__PLAIN_BOOL, 1, 'b'},     {"c", TFOS__PLAIN_INT, 1, 'i'},
    {"C", TFOS__PLAIN_UNSIGNED, 1, 'u'}, {"s", TFOS__PLAIN_INT, 2, 'i'},
    {"S", TFOS__PLAIN_UNSIGNED, 2, 'u'}, {"i", TFOS__PLAIN_INT, 4, 'i'},
    {"I", TFOS__PLAIN_UNSIGNED, 4, 'u'}, {"l", TFOS__PLAIN_INT, 8, 'i'},
    {"L", TFOS__PLAIN_UNSIGNED, 8, 'u'}, {"e", TFOS__PLAIN_FLOAT, 2, 'f'},
    {"f", TFOS__PLAIN_FLOAT, 4, 'f'},    {"g", TFOS__PLAIN_FLOAT, 8, 'f'},
    {"u", TFOS__PLAIN_TEXT, 4, 0},       {"U", TFOS__PLAIN_TEXT, 8, 0},
    {"z", TFOS__PLAIN_BYTES, 4, 0},      {"Z", TFOS__PLAIN_BYTES, 8, 0},
    {"tiM", TFOS__PLAIN_INT, 4, 'i'},    {"tin", TFOS__PLAIN_INTERVAL, 16, 0},
    {"+l", TFOS__PLAIN_LIST, 4, 0},      {"+L", TFOS__PLAIN_LIST, 8, 0},
    {"+m", TFOS__PLAIN_MAP, 4, 0},       {"+s", TFOS__PLAIN_STRUCT, 0, 0},
};

static void set_numbers(struct tfos__py_column *column, char letter, int itemsize, char unit)
{
    column->type = (struct tfos__py_value_type){
        .kind = TFOS__VALUE_SCALAR,
        .letter = letter,
        .itemsize = itemsize,
        .unit = unit,
    };
}

static bool read_simple(struct tfos__py_column *column, const char *format)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(format, formats[i].format) == 0) {
            column->plain = formats[i].kind;
            column->width = formats[i].width;
            if (formats[i].letter != 0)
                set_numbers(column, formats[i].letter, formats[i].width, 0);
            return true;
        }
    }
    return false;
}

/// What is counted in parts of a second: how many of them there are.
static int64_t parts_of(char unit)
{
    static const char units[] = "smun";
    const char *place = unit != '\0' ? strchr(units, unit) : NULL;
    int64_t parts = place != NULL;

    for (; place != NULL && place > units; place--)
        parts *= 1000;
    return parts;
}

/// "tDu" and "ttn".
static bool read_span(struct tfos__py_column *column, const char *format)
{
    bool is_time = strcmp(format, "ttn") == 0 || strcmp(format, "ttu") == 0;

    if (!is_time && (strncmp(format, "tD", 2) != 0 || strlen(format) != 3))
        return false;
    column->per_second = parts_of(format[2]);
    column->plain = is_time ? TFOS__PLAIN_TIME : TFOS__PLAIN_DURATION;
    column->width = 8;
    set_numbers(column, is_time ? 'i' : 'm', 8, is_time ? 0 : format[2]);
    return column->per_second > 0;
}

/// "tdD", or "tsu:" and a time zone.
static bool read_time(struct tfos__py_column *column, const char *format)
{
    if (strcmp(format, "tdD") == 0) {
        column->plain = TFOS__PLAIN_DATE;
        column->width = 4;
        set_numbers(column, 'M', 8, 'D');
        return true;
    }
    if (strncmp(format, "ts", 2) != 0 || format[2] == '\0' || format[3] != ':')
        return false;
    column->per_second = parts_of(format[2]);
    if (column->per_second == 0)
        return false;
    column->plain = TFOS__PLAIN_TIMESTAMP;
    column->width = 8;
    column->is_local = format[4] != '\0';
    set_numbers(column, 'M', 8, format[2]);
    return true;
}

/// "d:10,2", or "d:10,2,64" with the bits of a value.
static bool read_decimal(struct tfos__py_column *column, const char *format)
{
    const char *scale = strncmp(format, "d:", 2) == 0 ? strchr(format, ',') : NULL;
    char *end = NULL;
    long bits = 128, digits = 0;

    if (scale == NULL)
        return false;
    digits = strtol(scale + 1, &end, 10);
    if (*end == ',')
        bits = strtol(end + 1, &end, 10);
    if (*end != '\0' || labs(digits) > 1000 || bits < 32 || bits > 256 || bits % 32 != 0)
        return false;
    column->plain = TFOS__PLAIN_DECIMAL;
    column->width = (int)bits / 8;
    column->scale = (int)digits;
    return true;
}

/// "w:16" (bytes) and "+w:16" (a list).
static bool read_fixed(struct tfos__py_column *column, const char *format)
{
    bool is_list = format[0] == '+';
    char *end = NULL;

    format += is_list;
    if (strncmp(format, "w:", 2) != 0 || format[2] < '0' || format[2] > '9')
        return false;
    column->list_size = strtoll(format + 2, &end, 10);
    if (*end != '\0' || column->list_size > INT32_MAX)
        return false;
    column->plain = is_list ? TFOS__PLAIN_FIXED_LIST : TFOS__PLAIN_BYTES;
    return true;
}

static int refuse(const struct ArrowSchema *schema, const char *why)
{
    const char *name = schema->name != NULL ? schema->name : "";

    tfos__py_raise_format(TFOS_UNSUPPORTED,
                       "feed: column '%s': rows have no values of its type%s: cast the column "
                       "before it is fed, to numbers, text, bytes, dates, or lists or structs of "
                       "these",
                       name, why);
    return -1;
}

static int read_children(struct tfos__py_column *column, const struct ArrowSchema *schema)
{
    size_t count = (size_t)schema->n_children;

    column->children = PyMem_Calloc(count + 1, sizeof(*column->children));
    if (column->children == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; column->child_count < schema->n_children; column->child_count++) {
        struct tfos__py_column *child = &column->children[column->child_count];
        if (tfos__py_plain_init(child, schema->children[column->child_count]) < 0) {
            tfos__py_plain_clear(child);
            return -1;
        }
    }
    return 0;
}

static int read_names(struct tfos__py_column *column, const struct ArrowSchema *schema)
{
    column->names = PyTuple_New((Py_ssize_t)schema->n_children);
    for (int64_t i = 0; column->names != NULL && i < schema->n_children; i++) {
        const char *text = schema->children[i]->name;
        PyObject *name = PyUnicode_FromString(text != NULL ? text : "");
        if (name == NULL || PyTuple_SetItem(column->names, (Py_ssize_t)i, name) < 0)
            return -1;
    }
    column->fields = column->names != NULL ? PySequence_List(column->names) : NULL;
    return column->fields != NULL ? 0 : -1;
}

/// Fixed lists of numbers are numbers of one dimension more.
static void set_shape(struct tfos__py_column *column)
{
    const struct tfos__py_value_type *element = &column->children[0].type;

    if (!tfos__py_value_type_is_numeric(element) || element->dimension_count == TFOS__MAX_DIMENSIONS)
        return;
    column->type = *element;
    column->type.kind = TFOS__VALUE_ARRAY;
    column->type.is_fixed = true;
    column->type.dimension_count = element->dimension_count + 1;
    column->type.shape[0] = column->list_size;
    memcpy(&column->type.shape[1], element->shape,
           (size_t)element->dimension_count * sizeof(element->shape[0]));
}

int tfos__py_plain_init(struct tfos__py_column *column, const struct ArrowSchema *schema)
{
    column->type = (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
    if (!read_simple(column, schema->format) && !read_time(column, schema->format) &&
        !read_span(column, schema->format) && !read_decimal(column, schema->format) &&
        !read_fixed(column, schema->format))
        return refuse(schema, "");
    if (schema->dictionary != NULL)
        return refuse(schema, ", a dictionary");
    if (column->plain < TFOS__PLAIN_LIST)
        return schema->n_children == 0 ? 0 : refuse(schema, ", which has others within it");
    if (column->plain != TFOS__PLAIN_STRUCT && schema->n_children != 1)
        return refuse(schema, ", which has not one type of elements");
    if (read_children(column, schema) < 0)
        return -1;
    if (column->plain == TFOS__PLAIN_STRUCT)
        return read_names(column, schema);
    if (column->plain == TFOS__PLAIN_FIXED_LIST)
        set_shape(column);
    if (column->plain == TFOS__PLAIN_MAP &&
        (column->children[0].plain != TFOS__PLAIN_STRUCT || column->children[0].child_count != 2))
        return refuse(schema, ", a map without keys and values");
    return 0;
}

bool tfos__py_plain_check(const struct tfos__py_column *column, const struct ArrowArray *array)
{
    int64_t end = array->offset + array->length;

    if (array->n_children != column->child_count)
        return false;
    for (int64_t i = 0; i < column->child_count; i++) {
        const struct ArrowArray *child = array->children[i];
        bool is_short = false;
        if (column->plain == TFOS__PLAIN_STRUCT)
            is_short = child->length < end;
        else if (column->plain == TFOS__PLAIN_FIXED_LIST && column->list_size > 0)
            is_short = child->length / column->list_size < end;
        if (is_short || !tfos__py_plain_check(&column->children[i], child))
            return false;
    }
    return true;
}

void tfos__py_plain_clear(struct tfos__py_column *column)
{
    for (int64_t i = 0; i < column->child_count; i++)
        tfos__py_plain_clear(&column->children[i]);
    PyMem_Free(column->children);
    Py_XDECREF(column->names);
    Py_XDECREF(column->fields);
}
