// SPDX-License-Identifier: Apache-2.0
// Invariant: either the typed column has the values, or the tree; the originals, if there are any,
// are as many as the tree's values.
#include "field.h"
#include "row_schema.h"
#include "pickle.h"
#include "row_unpacker.h"

#include <string.h>

/// The column of a tree with originals: a struct of both.
struct tfos__py_field_view {
    struct ArrowSchema schema, *schema_children[2];
    struct ArrowArray array, *array_children[2];
    const void *buffers[1];
    char metadata[64];
};

static enum tfos__py_pack_result no_memory(void)
{
    PyErr_NoMemory();
    return TFOS__PACK_ERROR;
}

static int64_t length_of(const struct tfos__py_field *field)
{
    return field->tree != NULL ? tfos__py_tree_length(field->tree) : field->typed.series.length;
}

int tfos__py_field_init(struct tfos__py_field *field, bool wants_columns)
{
    field->wants_columns = wants_columns;
    // Columns for Spark have dates of Spark's, which are made of objects.
    field->typed.refuses_moments = wants_columns;
    return tfos__py_typed_init(&field->typed);
}

// ---- originals

/// Begins originals for a tree whose values so far are all made again.
static bool begin_originals(struct tfos__py_field *field, int64_t length)
{
    struct tfos__py_value_type opaque = {.kind = TFOS__VALUE_OPAQUE};

    field->originals = PyMem_Calloc(1, sizeof(*field->originals));
    field->view = PyMem_Calloc(1, sizeof(*field->view));
    if (field->originals == NULL || field->view == NULL ||
        !tfos__py_series_init(field->originals, &opaque))
        return false;
    while (field->originals->length < length) {
        if (!tfos__py_series_commit_null(field->originals))
            return false;
    }
    return true;
}

static void drop_originals(struct tfos__py_field *field)
{
    if (field->originals != NULL)
        tfos__py_series_clear(field->originals);
    PyMem_Free(field->originals);
    PyMem_Free(field->view);
    field->originals = NULL;
    field->view = NULL;
}

/// Notes the original of the value that the tree took last, or that it makes the same again.
static enum tfos__py_pack_result append_original(struct tfos__py_field *field, PyObject *value,
                                              bool is_same)
{
    PyObject *bytes = NULL;
    bool is_done = false;

    if (field->originals == NULL && (is_same || field->wants_columns))
        return TFOS__PACK_DONE;
    if (field->originals == NULL && !begin_originals(field, length_of(field) - 1))
        return no_memory();
    if (is_same)
        return tfos__py_series_commit_null(field->originals) ? TFOS__PACK_DONE : no_memory();
    bytes = tfos__py_pickle_dump(value);
    if (bytes == NULL)
        return TFOS__PACK_ERROR;
    is_done = tfos__py_series_write(field->originals, 0, PyBytes_AsString(bytes),
                                 (size_t)PyBytes_Size(bytes)) &&
              tfos__py_series_commit(field->originals, 1);
    Py_DECREF(bytes);
    return is_done ? TFOS__PACK_DONE : no_memory();
}

static enum tfos__py_pack_result append_to_tree(struct tfos__py_field *field, PyObject *value)
{
    int64_t length = length_of(field);
    bool is_same = false;
    enum tfos__py_pack_result result = tfos__py_tree_append(field->tree, value, &is_same);

    if (result == TFOS__PACK_DONE)
        result = append_original(field, value, is_same);
    if (result == TFOS__PACK_ERROR)
        tfos__py_field_truncate(field, length);
    return result;
}

enum tfos__py_pack_result tfos__py_field_append(struct tfos__py_field *field, PyObject *value)
{
    return field->tree != NULL ? append_to_tree(field, value)
                               : tfos__py_typed_append(&field->typed, value);
}

// ---- wider types

/// Whether a value may make the field a tree. Arrays of several dimensions whose shapes differ are
/// pickled for a reader of objects: their tree would have an offset for each of their rows.
static bool may_be_tree(const struct tfos__py_field *field, const struct tfos__py_value_type *type)
{
    return field->wants_columns || type->kind != TFOS__VALUE_ARRAY || type->dimension_count < 2;
}

/// Whether the typed column can be made wide enough for values of a type. One that was refused
/// though its type is the same has no form there.
static bool can_widen(const struct tfos__py_field *field, const struct tfos__py_value_type *type,
                      struct tfos__py_value_type *wide)
{
    *wide = tfos__py_value_type_widen(&field->typed.series.type, type);
    return field->tree == NULL && wide->kind != TFOS__VALUE_OPAQUE &&
           !tfos__py_value_type_equals(wide, &field->typed.series.type);
}

/// Appends the field's values to another. Results as of append().
static enum tfos__py_pack_result copy_values(struct tfos__py_field *from, struct tfos__py_field *to)
{
    struct ArrowSchema *schema = NULL;
    struct ArrowArray *array = NULL;
    struct tfos__py_column column = {0};
    enum tfos__py_pack_result result = TFOS__PACK_DONE;

    tfos__py_field_show(from, "", &schema, &array);
    if (tfos__py_column_init(&column, schema) < 0)
        result = TFOS__PACK_ERROR;
    for (int64_t i = 0; i < array->length && result == TFOS__PACK_DONE; i++) {
        PyObject *value = tfos__py_unpack_value(&column, array, i);
        result = value != NULL ? tfos__py_field_append(to, value) : TFOS__PACK_ERROR;
        Py_XDECREF(value);
    }
    tfos__py_column_clear(&column);
    return result;
}

/// Takes a value of no type in a column that has had none but None.
static enum tfos__py_pack_result take_any(struct tfos__py_field *field, PyObject *value)
{
    if (field->tree != NULL || field->typed.series.type.kind != TFOS__VALUE_NULL)
        return TFOS__PACK_REFUSED;
    field->typed.takes_any = true;
    return tfos__py_typed_append(&field->typed, value);
}

enum tfos__py_pack_result tfos__py_field_convert(struct tfos__py_field *field, PyObject *value)
{
    struct tfos__py_field wider = {.wants_columns = field->wants_columns};
    struct tfos__py_value_type type, wide;
    enum tfos__py_pack_result result = TFOS__PACK_REFUSED;

    if (field->typed.is_established || field->typed.takes_any)
        return TFOS__PACK_REFUSED;
    if (tfos__py_typed_classify(&field->typed, value, &type) < 0)
        return TFOS__PACK_ERROR;
    if (can_widen(field, &type, &wide))
        return TFOS__PACK_REFUSED;
    if (may_be_tree(field, &type) && may_be_tree(field, &field->typed.series.type)) {
        wider.tree = tfos__py_tree_open(field->tree, !field->wants_columns);
        result = wider.tree != NULL ? tfos__py_tree_widen(wider.tree, value) : TFOS__PACK_ERROR;
        if (result == TFOS__PACK_DONE)
            result = copy_values(field, &wider);
        if (result == TFOS__PACK_DONE)
            result = append_to_tree(&wider, value);
    }
    if (result != TFOS__PACK_DONE) {
        tfos__py_field_clear(&wider);
        return result == TFOS__PACK_REFUSED ? take_any(field, value) : result;
    }
    tfos__py_field_clear(field);
    *field = wider;
    return TFOS__PACK_DONE;
}

/// Makes the empty field a tree that takes a value too, or if that cannot be, one of any values.
static int widen_tree(struct tfos__py_field *field, PyObject *value)
{
    enum tfos__py_pack_result result = TFOS__PACK_DONE;
    bool is_new = field->tree == NULL;

    if (is_new && tfos__py_field_make_tree(field) < 0)
        return -1;
    tfos__py_field_truncate(field, 0);
    if (is_new)
        result = tfos__py_tree_widen_by(field->tree, &field->typed.series.type);
    if (result == TFOS__PACK_DONE)
        result = tfos__py_tree_widen(field->tree, value);
    if (result == TFOS__PACK_REFUSED)
        return tfos__py_field_make_opaque(field);
    return result == TFOS__PACK_DONE ? 0 : -1;
}

int tfos__py_field_widen(struct tfos__py_field *field, PyObject *value)
{
    struct tfos__py_value_type type, wide;

    if (field->tree != NULL)
        return widen_tree(field, value);
    if (tfos__py_typed_classify(&field->typed, value, &type) < 0)
        return -1;
    if (can_widen(field, &type, &wide))
        return tfos__py_typed_reset(&field->typed, &wide);
    return may_be_tree(field, &type) ? widen_tree(field, value) : tfos__py_field_make_opaque(field);
}

int tfos__py_field_make_tree(struct tfos__py_field *field)
{
    tfos__py_field_truncate(field, 0);
    field->tree = tfos__py_tree_open(NULL, !field->wants_columns);
    return field->tree != NULL ? 0 : -1;
}

int tfos__py_field_make_opaque(struct tfos__py_field *field)
{
    struct tfos__py_value_type opaque = {.kind = TFOS__VALUE_OPAQUE};

    drop_originals(field);
    tfos__py_tree_close(field->tree);
    field->tree = NULL;
    field->typed.takes_any = true;
    return tfos__py_typed_reset(&field->typed, &opaque);
}

// ---- the column

void tfos__py_field_truncate(struct tfos__py_field *field, int64_t length)
{
    if (field->tree != NULL && tfos__py_tree_length(field->tree) > length)
        tfos__py_tree_truncate(field->tree, length);
    else if (field->tree == NULL)
        tfos__py_series_truncate(&field->typed.series, length);
    if (field->originals != NULL && field->originals->length > length)
        tfos__py_series_truncate(field->originals, length);
}

size_t tfos__py_field_size(const struct tfos__py_field *field)
{
    size_t size = field->tree != NULL ? tfos__py_tree_size(field->tree)
                                      : tfos__py_series_size(&field->typed.series);

    return field->originals != NULL ? size + tfos__py_series_size(field->originals) : size;
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/// Shows a tree and its originals as one column.
static void show_both(struct tfos__py_field *field, const char *name)
{
    struct tfos__py_field_view *view = field->view;
    struct tfos__py_series_view *originals = tfos__py_series_show(field->originals, "original");

    tfos__py_tree_show(field->tree, "value", &view->schema_children[0], &view->array_children[0]);
    view->schema_children[1] = &originals->schema;
    view->array_children[1] = &originals->array;
    tfos__py_metadata_write("tfos.value", "original", view->metadata);
    view->schema = (struct ArrowSchema){
        .format = "+s",
        .name = name,
        .metadata = view->metadata,
        .n_children = 2,
        .children = view->schema_children,
        .release = release_schema,
    };
    view->array = (struct ArrowArray){
        .length = tfos__py_tree_length(field->tree),
        .n_buffers = 1,
        .n_children = 2,
        .buffers = view->buffers,
        .children = view->array_children,
        .release = release_array,
    };
}

void tfos__py_field_show(struct tfos__py_field *field, const char *name, struct ArrowSchema **schema,
                      struct ArrowArray **array)
{
    struct tfos__py_series_view *view = NULL;

    if (field->originals != NULL) {
        show_both(field, name);
        *schema = &field->view->schema;
        *array = &field->view->array;
    } else if (field->tree != NULL) {
        tfos__py_tree_show(field->tree, name, schema, array);
    } else {
        view = tfos__py_series_show(&field->typed.series, name);
        *schema = &view->schema;
        *array = &view->array;
    }
}

void tfos__py_field_reset(struct tfos__py_field *field)
{
    field->typed.is_established = field->typed.is_established || length_of(field) > 0;
    tfos__py_field_truncate(field, 0);
    if (field->tree != NULL && field->wants_columns)
        tfos__py_tree_reset(field->tree);
}

void tfos__py_field_clear(struct tfos__py_field *field)
{
    drop_originals(field);
    tfos__py_tree_close(field->tree);
    tfos__py_typed_clear(&field->typed);
    memset(field, 0, sizeof(*field));
}
