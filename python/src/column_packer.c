// SPDX-License-Identifier: Apache-2.0
// Invariant: either the flat column has the values, or the nested one; the originals, if there are
// any, are as many as the nested column's values.
#include "column_packer.h"

#include <string.h>

#include "error.h"
#include "pickle.h"
#include "row_schema.h"
#include "row_unpacker.h"

static const struct tfos__py_value_type opaque = {.kind = TFOS__VALUE_OPAQUE};

/// What has the values.
static struct tfos__arrow_builder *values_of(struct tfos__py_column_packer *packer)
{
    return packer->nested ? &packer->nested->values : &packer->flat.values;
}

int tfos__py_column_packer_init(struct tfos__py_column_packer *packer, bool wants_columns)
{
    const struct tfos__py_value_type unknown = {.kind = TFOS__VALUE_NULL};

    packer->wants_columns = wants_columns;
    // Columns for Spark have dates of Spark's, which are made of objects.
    packer->flat.refuses_moments = wants_columns;
    return tfos__py_flat_column_reset(&packer->flat, &unknown);
}

// ---- originals

static bool has_originals(const struct tfos__py_column_packer *packer)
{
    return packer->originals.type.kind != TFOS__ARROW_NULL;
}

/// Keeps the original of the value that the nested column took last, unless it makes the same
/// again.
static enum tfos__py_pack_result append_original(struct tfos__py_column_packer *packer,
                                                 PyObject *value, bool is_same)
{
    struct tfos__arrow_builder *originals = &packer->originals;
    PyObject *bytes = NULL;
    struct tfos_error err;
    enum tfos_status status = TFOS_OK;

    if (!has_originals(packer)) {
        if (is_same || packer->wants_columns)
            return TFOS__PACK_DONE;
        originals->length = packer->nested->values.length - 1;
        status = tfos__arrow_builder_adopt(originals, tfos__py_value_type_arrow(&opaque), 0, &err);
    }
    if (status == TFOS_OK && is_same) {
        status = tfos__arrow_builder_append_null(originals, &err);
    } else if (status == TFOS_OK) {
        bytes = tfos__py_pickle_dump(value);
        if (!bytes)
            return TFOS__PACK_ERROR;
        status = tfos__arrow_builder_append_bytes(originals, PyBytes_AsString(bytes),
                                                  (size_t)PyBytes_Size(bytes), &err);
        Py_DECREF(bytes);
    }
    return tfos__py_check(status, &err) < 0 ? TFOS__PACK_ERROR : TFOS__PACK_DONE;
}

static enum tfos__py_pack_result append_nested(struct tfos__py_column_packer *packer,
                                               PyObject *value)
{
    int64_t length = packer->nested->values.length;
    bool is_same = false;
    enum tfos__py_pack_result result =
        tfos__py_nested_column_append(packer->nested, value, &is_same);

    if (result == TFOS__PACK_DONE)
        result = append_original(packer, value, is_same);
    if (result == TFOS__PACK_ERROR)
        tfos__py_column_packer_truncate(packer, length);
    return result;
}

enum tfos__py_pack_result tfos__py_column_packer_append(struct tfos__py_column_packer *packer,
                                                        PyObject *value)
{
    return packer->nested ? append_nested(packer, value)
                          : tfos__py_flat_column_append(&packer->flat, value);
}

// ---- wider types

/// Whether a value may make the column a nested one. Arrays of several dimensions whose shapes
/// differ are pickled for a reader of objects: as nested lists they would have an offset for each
/// row.
static bool may_be_nested(const struct tfos__py_column_packer *packer,
                          const struct tfos__py_value_type *type)
{
    return packer->wants_columns || type->kind != TFOS__VALUE_ARRAY || type->dimension_count < 2;
}

/// Whether the flat column can be made wide enough for values of a type. One that was refused
/// though its type is the same has no form there.
static bool can_widen(const struct tfos__py_column_packer *packer,
                      const struct tfos__py_value_type *type, struct tfos__py_value_type *wide)
{
    *wide = tfos__py_value_type_widen(&packer->flat.type, type);
    return !packer->nested && wide->kind != TFOS__VALUE_OPAQUE &&
           !tfos__py_value_type_equals(wide, &packer->flat.type);
}

/// Appends the column's values to another. Results as of append().
static enum tfos__py_pack_result copy_values(struct tfos__py_column_packer *from,
                                             struct tfos__py_column_packer *to)
{
    struct ArrowSchema schema = {0};
    struct tfos__py_column column = {0};
    const struct ArrowArray *array = tfos__py_column_packer_show(from, "", &schema);
    enum tfos__py_pack_result result = TFOS__PACK_ERROR;

    if (array && tfos__py_column_init(&column, &schema) == 0)
        result = TFOS__PACK_DONE;
    for (int64_t i = 0; result == TFOS__PACK_DONE && i < array->length; i++) {
        PyObject *value = tfos__py_unpack_value(&column, array, i);
        result = value ? tfos__py_column_packer_append(to, value) : TFOS__PACK_ERROR;
        Py_XDECREF(value);
    }
    tfos__py_column_clear(&column);
    tfos__arrow_schema_release(&schema);
    return result;
}

/// Takes a value of no type in a column that has had none but None.
static enum tfos__py_pack_result take_any(struct tfos__py_column_packer *packer, PyObject *value)
{
    if (packer->nested || packer->flat.type.kind != TFOS__VALUE_NULL)
        return TFOS__PACK_REFUSED;
    packer->flat.takes_any = true;
    return tfos__py_flat_column_append(&packer->flat, value);
}

enum tfos__py_pack_result tfos__py_column_packer_convert(struct tfos__py_column_packer *packer,
                                                         PyObject *value)
{
    struct tfos__py_column_packer wider = {.wants_columns = packer->wants_columns};
    struct tfos__py_value_type type, wide;
    enum tfos__py_pack_result result = TFOS__PACK_REFUSED;

    if (packer->flat.is_established || packer->flat.takes_any)
        return TFOS__PACK_REFUSED;
    if (tfos__py_flat_column_classify(&packer->flat, value, &type) < 0)
        return TFOS__PACK_ERROR;
    if (can_widen(packer, &type, &wide))
        return TFOS__PACK_REFUSED;
    if (may_be_nested(packer, &type) && may_be_nested(packer, &packer->flat.type)) {
        wider.nested = tfos__py_nested_column_open(packer->nested, !packer->wants_columns);
        result =
            wider.nested ? tfos__py_nested_column_widen(wider.nested, value) : TFOS__PACK_ERROR;
        if (result == TFOS__PACK_DONE)
            result = copy_values(packer, &wider);
        if (result == TFOS__PACK_DONE)
            result = append_nested(&wider, value);
    }
    if (result != TFOS__PACK_DONE) {
        tfos__py_column_packer_clear(&wider);
        return result == TFOS__PACK_REFUSED ? take_any(packer, value) : result;
    }
    tfos__py_column_packer_clear(packer);
    *packer = wider;
    return TFOS__PACK_DONE;
}

/// Makes the empty column a nested one that takes a value too, or if that cannot be, one of any
/// values.
static int widen_nested(struct tfos__py_column_packer *packer, PyObject *value)
{
    enum tfos__py_pack_result result = TFOS__PACK_DONE;
    bool is_new = !packer->nested;

    if (is_new && tfos__py_column_packer_make_nested(packer) < 0)
        return -1;
    tfos__py_column_packer_truncate(packer, 0);
    if (is_new)
        result = tfos__py_nested_column_widen_by(packer->nested, &packer->flat.type);
    if (result == TFOS__PACK_DONE)
        result = tfos__py_nested_column_widen(packer->nested, value);
    if (result == TFOS__PACK_REFUSED)
        return tfos__py_column_packer_make_opaque(packer);
    return result == TFOS__PACK_DONE ? 0 : -1;
}

int tfos__py_column_packer_widen(struct tfos__py_column_packer *packer, PyObject *value)
{
    struct tfos__py_value_type type, wide;

    if (packer->nested)
        return widen_nested(packer, value);
    if (tfos__py_flat_column_classify(&packer->flat, value, &type) < 0)
        return -1;
    if (can_widen(packer, &type, &wide))
        return tfos__py_flat_column_reset(&packer->flat, &wide);
    return may_be_nested(packer, &type) ? widen_nested(packer, value)
                                        : tfos__py_column_packer_make_opaque(packer);
}

int tfos__py_column_packer_make_nested(struct tfos__py_column_packer *packer)
{
    tfos__py_column_packer_truncate(packer, 0);
    packer->nested = tfos__py_nested_column_open(NULL, !packer->wants_columns);
    return packer->nested ? 0 : -1;
}

int tfos__py_column_packer_make_opaque(struct tfos__py_column_packer *packer)
{
    tfos__arrow_builder_clear(&packer->originals);
    tfos__py_nested_column_close(packer->nested);
    packer->nested = NULL;
    packer->flat.takes_any = true;
    return tfos__py_flat_column_reset(&packer->flat, &opaque);
}

// ---- the column

void tfos__py_column_packer_truncate(struct tfos__py_column_packer *packer, int64_t length)
{
    tfos__arrow_builder_truncate(values_of(packer), length);
    if (packer->originals.length > length)
        tfos__arrow_builder_truncate(&packer->originals, length);
}

size_t tfos__py_column_packer_size(const struct tfos__py_column_packer *packer)
{
    const struct tfos__arrow_builder *values =
        packer->nested ? &packer->nested->values : &packer->flat.values;
    size_t size = tfos__arrow_builder_size(values);

    return has_originals(packer) ? size + tfos__arrow_builder_size(&packer->originals) : size;
}

static enum tfos_status make_schema(const char *name, struct ArrowSchema *schema,
                                    struct tfos_error *err)
{
    static const struct tfos_view original = {"original", 8}, pickle = {"pickle", 6};
    enum tfos_status status = tfos__arrow_schema_init(
        schema, tfos__arrow_type_of(TFOS__ARROW_STRUCT, 0, 0), name, 2, err);

    if (status == TFOS_OK)
        status = tfos__arrow_schema_note(schema, "tfos.value", original, err);
    if (status == TFOS_OK)
        status = tfos__arrow_schema_init(schema->children[1], tfos__py_value_type_arrow(&opaque),
                                         "original", 0, err);
    return status == TFOS_OK
               ? tfos__arrow_schema_note(schema->children[1], "tfos.value", pickle, err)
               : status;
}

/// Shows a nested column and its originals as one column.
static struct ArrowArray *show_both(struct tfos__py_column_packer *packer, const char *name,
                                    struct ArrowSchema *schema)
{
    static const void *no_buffers[1];
    struct tfos_error err;
    enum tfos_status status = make_schema(name, schema, &err);

    if (status == TFOS_OK)
        status = tfos__arrow_builder_show(&packer->originals, &err);
    if (tfos__py_check(status, &err) < 0 ||
        tfos__py_nested_column_show(packer->nested, "value", schema->children[0]) < 0)
        return NULL;
    packer->both_children[0] = &packer->nested->values.array;
    packer->both_children[1] = &packer->originals.array;
    packer->both = (struct ArrowArray){
        .length = packer->nested->values.length,
        .n_buffers = 1,
        .n_children = 2,
        .buffers = no_buffers,
        .children = packer->both_children,
    };
    return &packer->both;
}

struct ArrowArray *tfos__py_column_packer_show(struct tfos__py_column_packer *packer,
                                               const char *name, struct ArrowSchema *schema)
{
    int result = 0;

    if (has_originals(packer))
        return show_both(packer, name, schema);
    if (packer->nested)
        result = tfos__py_nested_column_show(packer->nested, name, schema);
    else
        result = tfos__py_flat_column_show(&packer->flat, name, schema);
    return result == 0 ? &values_of(packer)->array : NULL;
}

int tfos__py_column_packer_reset(struct tfos__py_column_packer *packer)
{
    packer->flat.is_established = packer->flat.is_established || values_of(packer)->length > 0;
    tfos__py_column_packer_truncate(packer, 0);
    if (packer->nested && packer->wants_columns)
        return tfos__py_nested_column_reset(packer->nested);
    return 0;
}

void tfos__py_column_packer_clear(struct tfos__py_column_packer *packer)
{
    tfos__arrow_builder_clear(&packer->originals);
    tfos__py_nested_column_close(packer->nested);
    tfos__py_flat_column_clear(&packer->flat);
    memset(packer, 0, sizeof(*packer));
}
