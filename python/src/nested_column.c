// SPDX-License-Identifier: Apache-2.0
// The form of a value is found before any of it is written, so that it is refused as a whole.
// numpy's leaves keep their dtype, but for the halves, which Python cannot write, and integers that
// no int64 holds.
#include "nested_column.h"

#include <string.h>

#include "error.h"

#define EXACT_LIMIT ((int64_t)1 << 53) // integers up to this size are floats without loss

/// What a value is made of. The type of leaves has `kind` BOOL to BYTES, or NULL while there is
/// none; numbers have numpy's letter and itemsize too.
struct form {
    int depth;      ///< levels of lists, at least
    int leaf_depth; ///< -1: there is no leaf
    struct tfos__py_value_type leaf;
    bool has_large; ///< an integer that no float equals
    bool is_mixed;  ///< leaves of several kinds
    bool is_other;  ///< not only lists and Python's own leaves
    bool mixes_bools;
    struct tfos__py_value_type numpy_leaf; ///< of the leaves below, if kind is not NULL: an array's
};

static enum tfos__py_pack_result conclude(enum tfos_status status, const struct tfos_error *err)
{
    return tfos__py_check(status, err) < 0 ? TFOS__PACK_ERROR : TFOS__PACK_DONE;
}

// ---- forms

/// Leaves of Python's own.
static struct tfos__py_value_type leaf_of(enum tfos__py_value_kind kind)
{
    struct tfos__py_value_type leaf = {.kind = kind};

    if (kind >= TFOS__VALUE_BOOL && kind <= TFOS__VALUE_FLOAT) {
        leaf.letter = kind == TFOS__VALUE_BOOL ? 'b' : kind == TFOS__VALUE_INT ? 'i' : 'f';
        leaf.itemsize = kind == TFOS__VALUE_BOOL ? 1 : 8;
    }
    return leaf;
}

static bool is_same_leaf(const struct tfos__py_value_type *a, const struct tfos__py_value_type *b)
{
    return a->kind == b->kind && a->letter == b->letter && a->itemsize == b->itemsize;
}

/// The type that holds leaves of both; kind OPAQUE: there is none.
static struct tfos__py_value_type widen(const struct tfos__py_value_type *a,
                                        const struct tfos__py_value_type *b, bool mixes_bools)
{
    enum tfos__py_value_kind first = mixes_bools ? TFOS__VALUE_BOOL : TFOS__VALUE_INT;
    bool are_numbers = a->kind >= first && b->kind >= first && a->kind <= TFOS__VALUE_FLOAT &&
                       b->kind <= TFOS__VALUE_FLOAT;

    if (b->kind == TFOS__VALUE_NULL || is_same_leaf(a, b))
        return *a;
    if (a->kind == TFOS__VALUE_NULL || (a->kind == TFOS__VALUE_BOOL && are_numbers))
        return *b;
    if (b->kind == TFOS__VALUE_BOOL && are_numbers)
        return *a;
    return leaf_of(are_numbers ? (a->kind > b->kind ? a->kind : b->kind) : TFOS__VALUE_OPAQUE);
}

/// Adds a value to the form. 1: it fits, 0: it does not, -1 with an exception.
static int look(struct form *form, PyObject *value, int depth);

static int look_at_list(struct form *form, PyObject *list, int depth)
{
    tfos__py_item_getter *get = tfos__py_value_getter(list);
    Py_ssize_t count = PyObject_Size(list);
    int result = depth < TFOS__NESTED_DEPTH;

    if (form->depth < depth + 1)
        form->depth = depth + 1;
    form->is_other |= Py_TYPE(list) == &PyTuple_Type;
    for (Py_ssize_t i = 0; result > 0 && i < count; i++)
        result = look(form, get(list, i), depth + 1);
    return result;
}

/// Whether one of Python's leaves adds nothing to the form, as most do.
static bool is_familiar(const struct form *form, enum tfos__py_value_kind kind)
{
    bool is_wide = form->leaf.letter != 'u' &&
                   (form->leaf.itemsize == 8 || form->leaf.letter == 'b' || form->leaf.letter == 0);

    return form->numpy_leaf.kind == TFOS__VALUE_NULL && is_wide &&
           (form->leaf.kind == kind ||
            (form->is_mixed && form->leaf.kind == TFOS__VALUE_FLOAT && kind == TFOS__VALUE_INT));
}

/// Takes a leaf of a kind into the form. False: it does not go among those before.
static bool take_leaf(struct form *form, enum tfos__py_value_kind kind, int depth)
{
    struct tfos__py_value_type leaf;

    if (form->leaf_depth >= 0 && form->leaf_depth != depth)
        return false;
    if (is_familiar(form, kind))
        return true;
    leaf = form->numpy_leaf.kind == kind ? form->numpy_leaf : leaf_of(kind);
    form->is_mixed |= form->leaf.kind != TFOS__VALUE_NULL && form->leaf.kind != kind;
    form->leaf_depth = depth;
    form->leaf = widen(&form->leaf, &leaf, form->mixes_bools);
    return form->leaf.kind != TFOS__VALUE_OPAQUE;
}

/// Looks at a value of Python's own classes.
static int look_at_plain(struct form *form, PyObject *value, int depth)
{
    enum tfos__py_value_kind kind = TFOS__VALUE_NULL;

    if (value == Py_None)
        return 1;
    if (tfos__py_value_is_list(value))
        return look_at_list(form, value, depth);
    if (tfos__py_value_kind_of(value, &kind) < 0)
        return -1;
    if (kind == TFOS__VALUE_OPAQUE)
        return 0;
    if (kind == TFOS__VALUE_INT) {
        int64_t number = PyLong_AsLongLong(value);
        form->has_large |= number > EXACT_LIMIT || number < -EXACT_LIMIT;
    }
    return take_leaf(form, kind, depth);
}

static int look(struct form *form, PyObject *value, int depth)
{
    struct tfos__py_value_type outer;
    PyObject *plain = NULL;
    int result = -1;

    if (tfos__py_value_is_plain(value))
        return look_at_plain(form, value, depth);
    outer = form->numpy_leaf;
    plain = tfos__py_value_plain(value, &form->numpy_leaf);
    form->is_other |= plain != value;
    if (plain)
        result = look_at_plain(form, plain, depth);
    Py_XDECREF(plain);
    form->numpy_leaf = outer;
    return result;
}

/// The form of values of a flat column. False: they have none.
static bool find_form(struct form *form, const struct tfos__py_value_type *type)
{
    bool is_list = type->kind == TFOS__VALUE_LIST || type->kind == TFOS__VALUE_TUPLE;
    enum tfos__py_value_kind kind = is_list ? type->item : type->kind;
    struct tfos__py_value_type elements = tfos__py_value_type_elements(type);

    *form = (struct form){.leaf_depth = -1};
    form->depth = is_list ? 1 : type->kind == TFOS__VALUE_ARRAY ? type->dimension_count : 0;
    if (kind == TFOS__VALUE_NULL)
        return true;
    if (kind == TFOS__VALUE_SCALAR || kind == TFOS__VALUE_ARRAY)
        form->leaf = tfos__py_value_leaf(&elements);
    else
        form->leaf = leaf_of(kind);
    form->leaf_depth = form->depth;
    return form->leaf.kind != TFOS__VALUE_OPAQUE;
}

// ---- types

/// Arrow's type of the leaves, of which booleans are bits.
static struct tfos__arrow_type arrow_of(const struct tfos__py_value_type *leaf)
{
    bool has_bytes = leaf->kind == TFOS__VALUE_TEXT || leaf->kind == TFOS__VALUE_BYTES;

    return has_bytes || leaf->kind == TFOS__VALUE_NULL ? tfos__py_value_type_item_arrow(leaf)
                                                       : tfos__py_value_type_plain_arrow(leaf);
}

/// Gives the column, whose leaves are all null, one more level of lists.
static enum tfos_status add_level(struct tfos__py_nested_column *column, struct tfos_error *err)
{
    struct tfos__arrow_builder *level = column->levels[column->depth];
    enum tfos_status status =
        tfos__arrow_builder_adopt(level, tfos__arrow_type_of(TFOS__ARROW_LIST, 64, 0), 1, err);

    if (status < 0)
        return status;
    column->levels[++column->depth] = &level->children[0];
    return tfos__arrow_builder_adopt(&level->children[0], arrow_of(&column->leaf), 0, err);
}

/// Makes the column as deep and wide as a form needs. DONE, REFUSED or ERROR.
static enum tfos__py_pack_result adapt(struct tfos__py_nested_column *column,
                                       const struct form *form)
{
    struct tfos__py_value_type leaf = widen(&column->leaf, &form->leaf, column->mixes_bools);
    int depth = column->depth > form->depth ? column->depth : form->depth;
    bool has_leaf = column->leaf.kind != TFOS__VALUE_NULL;
    bool is_other = !is_same_leaf(&leaf, &column->leaf);
    struct tfos_error err;
    enum tfos_status status = TFOS_OK;

    if (leaf.kind == TFOS__VALUE_OPAQUE || (form->leaf_depth >= 0 && form->leaf_depth < depth) ||
        (has_leaf && depth > column->depth) ||
        (form->has_large && leaf.kind == TFOS__VALUE_FLOAT) ||
        (has_leaf && column->values.length > 0 && is_other))
        return TFOS__PACK_REFUSED;
    while (status == TFOS_OK && column->depth < depth)
        status = add_level(column, &err);
    if (status == TFOS_OK && is_other)
        status = tfos__arrow_builder_adopt(column->levels[depth], arrow_of(&leaf), 0, &err);
    if (status == TFOS_OK)
        column->leaf = leaf;
    return conclude(status, &err);
}

// ---- values

static enum tfos_status write_number(const struct tfos__py_value_type *leaf,
                                     struct tfos__arrow_builder *to, PyObject *value,
                                     struct tfos_error *err)
{
    enum tfos_status status = tfos__arrow_builder_reserve(to, 1, err);
    double real = 0;
    float narrow = 0;
    int64_t whole = 0;
    const void *from = &whole; // whose first bytes are those of a smaller integer

    if (status < 0)
        return status;
    if (leaf->kind == TFOS__VALUE_BOOL) {
        tfos__arrow_builder_put_bits(to, value == Py_True, 1);
        return TFOS_OK;
    }
    if (leaf->kind == TFOS__VALUE_INT)
        whole = PyLong_AsLongLong(value);
    else
        real = PyFloat_AsDouble(value);
    narrow = (float)real;
    if (leaf->kind == TFOS__VALUE_FLOAT)
        from = to->type.width == 32 ? (const void *)&narrow : (const void *)&real;
    memcpy(tfos__arrow_builder_end(to), from, (size_t)to->type.width / 8);
    to->length++;
    return TFOS_OK;
}

/// Writes a text or bytes. An exception may be set.
static enum tfos_status write_bytes(const struct tfos__py_value_type *leaf,
                                    struct tfos__arrow_builder *to, PyObject *value,
                                    struct tfos_error *err)
{
    PyObject *text = NULL;
    char *data = NULL;
    Py_ssize_t size = 0;
    enum tfos_status status = TFOS_OK;

    if (leaf->kind == TFOS__VALUE_TEXT)
        value = text = tfos__py_value_encode(value); // it was encoded before, to find the form
    if (value && PyBytes_AsStringAndSize(value, &data, &size) == 0)
        status = tfos__arrow_builder_append_bytes(to, data, (size_t)size, err);
    Py_XDECREF(text);
    return status;
}

/// Puts a value behind the last of its depth. An exception may be set instead.
static enum tfos_status put(struct tfos__py_nested_column *column, PyObject *value, int depth,
                            struct tfos_error *err)
{
    struct tfos__arrow_builder *to = column->levels[depth];
    PyObject *plain = tfos__py_value_plain(value, NULL);
    enum tfos_status status = TFOS_OK;

    if (!plain)
        return TFOS_OK;
    if (plain == Py_None) {
        status = tfos__arrow_builder_append_null(to, err);
    } else if (depth < column->depth) {
        tfos__py_item_getter *get = tfos__py_value_getter(plain);
        Py_ssize_t count = PyObject_Size(plain);
        for (Py_ssize_t i = 0; status == TFOS_OK && i < count && !PyErr_Occurred(); i++)
            status = put(column, get(plain, i), depth + 1, err);
        if (status == TFOS_OK)
            status = tfos__arrow_builder_end_list(to, err);
    } else if (to->type.layout == TFOS__ARROW_FIXED) {
        status = write_number(&column->leaf, to, plain, err);
    } else {
        status = write_bytes(&column->leaf, to, plain, err);
    }
    Py_DECREF(plain);
    return status;
}

/// Finds the form of a value and adapts the column to it.
static enum tfos__py_pack_result prepare(struct tfos__py_nested_column *column, PyObject *value,
                                         bool *is_same)
{
    struct form form = {.leaf_depth = -1, .mixes_bools = column->mixes_bools};
    int fits = look(&form, value, 0);
    enum tfos__py_pack_result result = fits == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;

    if (fits > 0)
        result = adapt(column, &form);
    if (result == TFOS__PACK_DONE)
        *is_same = !form.is_other && !form.is_mixed &&
                   (form.leaf.kind == TFOS__VALUE_NULL || form.leaf.kind == column->leaf.kind);
    return result;
}

enum tfos__py_pack_result tfos__py_nested_column_append(struct tfos__py_nested_column *column,
                                                        PyObject *value, bool *is_same)
{
    int64_t length = column->values.length;
    enum tfos__py_pack_result result = prepare(column, value, is_same);
    struct tfos_error err;

    if (result != TFOS__PACK_DONE)
        return result;
    result = conclude(put(column, value, 0, &err), &err);
    if (PyErr_Occurred()) {
        tfos__arrow_builder_truncate(&column->values, length);
        return TFOS__PACK_ERROR;
    }
    return result;
}

enum tfos__py_pack_result tfos__py_nested_column_widen(struct tfos__py_nested_column *column,
                                                       PyObject *value)
{
    bool is_same = false;

    return prepare(column, value, &is_same);
}

enum tfos__py_pack_result tfos__py_nested_column_widen_by(struct tfos__py_nested_column *column,
                                                          const struct tfos__py_value_type *type)
{
    struct form form;

    return find_form(&form, type) ? adapt(column, &form) : TFOS__PACK_REFUSED;
}

int tfos__py_nested_column_reset(struct tfos__py_nested_column *column)
{
    struct tfos_error err;

    tfos__arrow_builder_clear(&column->values);
    column->levels[0] = &column->values;
    column->depth = 0;
    column->leaf = (struct tfos__py_value_type){.kind = TFOS__VALUE_NULL};
    return tfos__py_check(
        tfos__arrow_builder_adopt(&column->values, arrow_of(&column->leaf), 0, &err), &err);
}

static enum tfos_status make_schema(const struct tfos__py_nested_column *column, const char *name,
                                    struct ArrowSchema *schema, struct tfos_error *err)
{
    static const struct tfos_view null = {"null", 4};
    enum tfos_status status = TFOS_OK;

    for (int depth = 0; status == TFOS_OK && depth <= column->depth; depth++) {
        schema = depth > 0 ? schema->children[0] : schema;
        status = tfos__arrow_schema_init(schema, column->levels[depth]->type,
                                         depth > 0 ? "item" : name, depth < column->depth, err);
    }
    if (status == TFOS_OK && column->leaf.kind == TFOS__VALUE_NULL)
        // only nulls and empty lists so far: no type is known
        status = tfos__arrow_schema_note(schema, "tfos.value", null, err);
    return status;
}

int tfos__py_nested_column_show(struct tfos__py_nested_column *column, const char *name,
                                struct ArrowSchema *schema)
{
    struct tfos_error err;
    enum tfos_status status = make_schema(column, name, schema, &err);

    if (status == TFOS_OK)
        status = tfos__arrow_builder_show(&column->values, &err);
    return tfos__py_check(status, &err);
}

struct tfos__py_nested_column *
tfos__py_nested_column_open(const struct tfos__py_nested_column *like, bool mixes_bools)
{
    struct tfos__py_nested_column *column = PyMem_Calloc(1, sizeof(*column));
    struct form form = {.leaf_depth = -1};

    if (!column) {
        PyErr_NoMemory();
        return NULL;
    }
    column->mixes_bools = mixes_bools;
    if (like) {
        form.depth = like->depth;
        form.leaf = like->leaf;
    }
    if (tfos__py_nested_column_reset(column) == 0 && adapt(column, &form) == TFOS__PACK_DONE)
        return column;
    tfos__py_nested_column_close(column);
    return NULL;
}

void tfos__py_nested_column_close(struct tfos__py_nested_column *column)
{
    if (!column)
        return;
    tfos__arrow_builder_clear(&column->values);
    PyMem_Free(column);
}
