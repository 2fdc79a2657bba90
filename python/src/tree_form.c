// SPDX-License-Identifier: Apache-2.0
// Values are looked at as lists of Python's own leaves. numpy's keep their dtype, but for the
// halves, which Python cannot write, and integers that no int64 holds.
#include "tree_form.h"
#include "atom.h"
#include "numpy.h"

#include <string.h>

#define EXACT_LIMIT ((int64_t)1 << 53) ///< integers up to this size are floats without loss

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

/// What leaves are whose elements numpy calls so; kind OPAQUE: none.
static struct tfos__py_value_type leaf_of_elements(const struct tfos__py_value_type *elements)
{
    struct tfos__py_value_type leaf = *elements;

    leaf.kind = leaf.letter == 'b'                         ? TFOS__VALUE_BOOL
                : leaf.letter == 'i' || leaf.letter == 'u' ? TFOS__VALUE_INT
                : leaf.letter == 'f' && leaf.itemsize <= 8 ? TFOS__VALUE_FLOAT
                                                           : TFOS__VALUE_OPAQUE;
    if (leaf.kind == TFOS__VALUE_FLOAT && leaf.itemsize == 2)
        leaf.itemsize = 4;
    return leaf;
}

struct tfos__py_value_type tfos__py_tree_form_widen(const struct tfos__py_value_type *a,
                                              const struct tfos__py_value_type *b, bool mixes_bools)
{
    bool are_numbers = a->kind >= (mixes_bools ? TFOS__VALUE_BOOL : TFOS__VALUE_INT) &&
                       b->kind >= (mixes_bools ? TFOS__VALUE_BOOL : TFOS__VALUE_INT) &&
                       a->kind <= TFOS__VALUE_FLOAT && b->kind <= TFOS__VALUE_FLOAT;

    if (b->kind == TFOS__VALUE_NULL)
        return *a;
    if (a->kind == TFOS__VALUE_NULL)
        return *b;
    if (a->kind == b->kind && a->letter == b->letter && a->itemsize == b->itemsize)
        return *a;
    if (a->kind == TFOS__VALUE_BOOL && are_numbers)
        return *b;
    if (b->kind == TFOS__VALUE_BOOL && are_numbers)
        return *a;
    return leaf_of(are_numbers ? (a->kind > b->kind ? a->kind : b->kind) : TFOS__VALUE_OPAQUE);
}

/// Whether it is an array of numpy's, of whichever class, or one of its scalars.
static int is_numpy(const struct tfos__py_numpy *numpy, PyObject *value)
{
    struct tfos__py_value_type type;

    if (PyType_IsSubtype(Py_TYPE(value), numpy->ndarray) ||
        tfos__py_numpy_classify(numpy, value, &type))
        return 1;
    return PyErr_Occurred() ? -1 : 0;
}

/// Whether an array has no numbers, but texts, bytes or objects.
static int has_objects(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *kind = dtype != NULL ? PyObject_GetAttrString(dtype, "kind") : NULL;
    int result = -1;

    if (kind != NULL)
        result = PyUnicode_CompareWithASCIIString(kind, "O") == 0 ||
                 PyUnicode_CompareWithASCIIString(kind, "S") == 0 ||
                 PyUnicode_CompareWithASCIIString(kind, "U") == 0;
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    return result;
}

/// Whether it is of one of the classes of lists and leaves.
static bool is_own(PyObject *value)
{
    PyTypeObject *class = Py_TYPE(value);

    return class == &PyFloat_Type || class == &PyLong_Type || tfos__py_tree_form_is_list(value) ||
           value == Py_None || class == &PyBool_Type || class == &PyUnicode_Type ||
           class == &PyBytes_Type;
}

/// As plain(); `*leaf` becomes the type of the leaves of an array or scalar of numpy's numbers, and
/// else is left alone.
static PyObject *make_plain(PyObject *value, struct tfos__py_value_type *leaf)
{
    const struct tfos__py_numpy *numpy = NULL;
    struct tfos__py_value_type elements = {.kind = TFOS__VALUE_SCALAR};
    bool is_native = false;
    int is = 0;

    if (is_own(value)) {
        Py_INCREF(value);
        return value;
    }
    numpy = tfos__py_numpy_find();
    is = numpy != NULL ? is_numpy(numpy, value) : 0;
    if (is < 0 || PyErr_Occurred())
        return NULL;
    if (is == 0)
        return tfos__py_atom_base(value);
    if (tfos__py_numpy_read_elements(numpy, value, &elements, &is_native)) {
        elements = leaf_of_elements(&elements);
        is = elements.kind != TFOS__VALUE_OPAQUE;
        if (is)
            *leaf = elements;
    } else if (!PyErr_Occurred()) {
        is = has_objects(value);
    }
    if (is < 0 || PyErr_Occurred())
        return NULL;
    if (is > 0)
        return PyObject_CallMethod(value, "tolist", NULL);
    Py_INCREF(value);
    return value;
}

PyObject *tfos__py_tree_form_plain(PyObject *value)
{
    struct tfos__py_value_type leaf;

    return make_plain(value, &leaf);
}

struct survey {
    struct tfos__py_tree_form *form;
    bool mixes_bools;
    struct tfos__py_value_type leaf; ///< of the leaves below, if kind is not NULL: an array's
};

/// 1: the value fits, 0: it does not, -1 with an exception.
static int look(struct survey *survey, PyObject *value, int depth);

static int look_at_list(struct survey *survey, PyObject *list, int depth)
{
    struct tfos__py_tree_form *form = survey->form;
    Py_ssize_t count = PyObject_Size(list);
    int result = depth < TFOS__TREE_DEPTH;

    if (form->depth < depth + 1)
        form->depth = depth + 1;
    form->is_other |= Py_TYPE(list) == &PyTuple_Type;
    for (Py_ssize_t i = 0; result > 0 && i < count; i++)
        result = look(survey, tfos__py_tree_form_item(list, i), depth + 1);
    return result;
}

/// Whether one of Python's leaves adds nothing to the form, as most do.
static bool is_familiar(const struct survey *survey, enum tfos__py_value_kind kind)
{
    const struct tfos__py_tree_form *form = survey->form;
    bool is_wide = form->leaf.letter != 'u' &&
                   (form->leaf.itemsize == 8 || form->leaf.letter == 'b' || form->leaf.letter == 0);

    return survey->leaf.kind == TFOS__VALUE_NULL && is_wide &&
           (form->leaf.kind == kind ||
            (form->is_mixed && form->leaf.kind == TFOS__VALUE_FLOAT && kind == TFOS__VALUE_INT));
}

/// Takes a leaf of a kind into the form. False: it does not go among those before.
static bool take_leaf(struct survey *survey, enum tfos__py_value_kind kind, int depth)
{
    struct tfos__py_tree_form *form = survey->form;
    struct tfos__py_value_type leaf;

    if (form->leaf_depth >= 0 && form->leaf_depth != depth)
        return false;
    if (is_familiar(survey, kind))
        return true;
    leaf = survey->leaf.kind == kind ? survey->leaf : leaf_of(kind);
    form->is_mixed |= form->leaf.kind != TFOS__VALUE_NULL && form->leaf.kind != kind;
    form->leaf_depth = depth;
    form->leaf = tfos__py_tree_form_widen(&form->leaf, &leaf, survey->mixes_bools);
    return form->leaf.kind != TFOS__VALUE_OPAQUE;
}

static int look_at_leaf(struct survey *survey, PyObject *value, int depth)
{
    struct tfos__py_tree_form *form = survey->form;
    enum tfos__py_value_kind kind = TFOS__VALUE_NULL;

    if (tfos__py_atom_classify(value, &kind) < 0)
        return -1;
    if (kind == TFOS__VALUE_OPAQUE)
        return 0;
    if (kind == TFOS__VALUE_INT) {
        int64_t number = PyLong_AsLongLong(value);
        form->has_large |= number > EXACT_LIMIT || number < -EXACT_LIMIT;
    }
    return take_leaf(survey, kind, depth);
}

/// Looks at a value of Python's own classes.
static int look_at_own(struct survey *survey, PyObject *value, int depth)
{
    if (value == Py_None)
        return 1;
    return tfos__py_tree_form_is_list(value) ? look_at_list(survey, value, depth)
                                          : look_at_leaf(survey, value, depth);
}

static int look(struct survey *survey, PyObject *value, int depth)
{
    struct tfos__py_value_type outer;
    PyObject *own = NULL;
    int result = -1;

    if (is_own(value))
        return look_at_own(survey, value, depth);
    outer = survey->leaf;
    own = make_plain(value, &survey->leaf);
    survey->form->is_other |= own != value;
    if (own != NULL)
        result = look_at_own(survey, own, depth);
    Py_XDECREF(own);
    survey->leaf = outer;
    return result;
}

int tfos__py_tree_form_init(struct tfos__py_tree_form *form, PyObject *value, bool mixes_bools)
{
    struct survey survey = {.form = form, .mixes_bools = mixes_bools};

    *form = (struct tfos__py_tree_form){.leaf_depth = -1};
    return look(&survey, value, 0);
}

bool tfos__py_tree_form_of_type(struct tfos__py_tree_form *form, const struct tfos__py_value_type *type)
{
    bool is_list = type->kind == TFOS__VALUE_LIST || type->kind == TFOS__VALUE_TUPLE;
    enum tfos__py_value_kind kind = is_list ? type->item : type->kind;
    struct tfos__py_value_type elements = tfos__py_value_type_elements(type);

    *form = (struct tfos__py_tree_form){.leaf_depth = -1};
    form->depth = is_list ? 1 : type->kind == TFOS__VALUE_ARRAY ? type->dimension_count : 0;
    if (kind == TFOS__VALUE_NULL)
        return true;
    if (kind == TFOS__VALUE_SCALAR || kind == TFOS__VALUE_ARRAY)
        form->leaf = leaf_of_elements(&elements);
    else
        form->leaf = leaf_of(kind);
    form->leaf_depth = form->depth;
    return form->leaf.kind != TFOS__VALUE_OPAQUE;
}
