// SPDX-License-Identifier: Apache-2.0
// A value is surveyed before any of it is written, so that it is refused as a whole. Invariant:
// each level has a validity bit for each of its values and, but for leaves of fixed width, an end;
// all behind is scratch.
#include "tree.h"
#include "atom.h"
#include "numpy.h"
#include "series.h"

#include <string.h>

#define DEPTH_LIMIT 32                 ///< levels of lists; as many as Spark's side reads
#define EXACT_LIMIT ((int64_t)1 << 53) ///< integers up to this size are floats without loss
#define NOTE_SIZE 64                   ///< room for a column's metadata

/// Values of one depth.
struct level {
    int64_t length;
    struct tfos__block validity; ///< bits
    struct tfos__block ends;     ///< int64 offsets: of lists, and of texts and bytes
};

struct view {
    struct ArrowSchema schema, *schema_child;
    struct ArrowArray array, *array_child;
    const void *buffers[3];
};

struct tfos__tree {
    int depth;                  ///< of the leaves
    enum tfos__value_kind leaf; ///< BOOL to BYTES; NULL while there is none
    bool has_large;             ///< an integer that no float equals
    struct level levels[DEPTH_LIMIT + 1];
    struct tfos__block leaves;
    struct view views[DEPTH_LIMIT + 1];
    char metadata[NOTE_SIZE];
};

/// What a value is made of.
struct form {
    int depth;      ///< levels of lists, at least
    int leaf_depth; ///< -1: there is no leaf
    enum tfos__value_kind leaf;
    bool has_large;
};

static enum tfos__pack_result no_memory(void)
{
    PyErr_NoMemory();
    return TFOS__PACK_ERROR;
}

// ---- what a value is

static bool is_list(PyObject *value)
{
    return Py_TYPE(value) == &PyList_Type || Py_TYPE(value) == &PyTuple_Type;
}

static PyObject *item_of(PyObject *list, Py_ssize_t index)
{
    return Py_TYPE(list) == &PyList_Type ? PyList_GetItem(list, index)
                                         : PyTuple_GetItem(list, index);
}

/// numpy's arrays and scalars as lists and numbers, anything else as it is: a new reference. NULL
/// with an exception.
static PyObject *plain(PyObject *value)
{
    const struct tfos__numpy *numpy = NULL;
    struct tfos__value_type type;
    bool is_numpy = false;

    if (value != Py_None && !is_list(value)) {
        numpy = tfos__numpy_find();
        is_numpy = numpy != NULL &&
                   (Py_TYPE(value) == numpy->ndarray || tfos__numpy_classify(numpy, value, &type));
        if (PyErr_Occurred())
            return NULL;
    }
    if (is_numpy)
        return PyObject_CallMethod(value, "tolist", NULL);
    Py_INCREF(value);
    return value;
}

/// The kind that holds leaves of both; OPAQUE: there is none.
static enum tfos__value_kind widen(enum tfos__value_kind a, enum tfos__value_kind b, bool has_large)
{
    bool are_numbers = (a == TFOS__VALUE_INT && b == TFOS__VALUE_FLOAT) ||
                       (a == TFOS__VALUE_FLOAT && b == TFOS__VALUE_INT);

    if (a == b || b == TFOS__VALUE_NULL)
        return a;
    if (a == TFOS__VALUE_NULL)
        return b;
    return are_numbers && !has_large ? TFOS__VALUE_FLOAT : TFOS__VALUE_OPAQUE;
}

/// 1: the value fits, 0: it does not, -1 with an exception.
static int survey(PyObject *value, int depth, struct form *form);

static int survey_list(PyObject *list, int depth, struct form *form)
{
    int result = depth < DEPTH_LIMIT;

    if (form->depth < depth + 1)
        form->depth = depth + 1;
    for (Py_ssize_t i = 0; result > 0 && i < PyObject_Size(list); i++)
        result = survey(item_of(list, i), depth + 1, form);
    return result;
}

static int survey_leaf(PyObject *value, int depth, struct form *form)
{
    enum tfos__value_kind kind = TFOS__VALUE_NULL;

    if (tfos__atom_classify(value, &kind) < 0)
        return -1;
    if (kind == TFOS__VALUE_OPAQUE || (form->leaf_depth >= 0 && form->leaf_depth != depth))
        return 0;
    if (kind == TFOS__VALUE_INT) {
        int64_t number = PyLong_AsLongLong(value);
        form->has_large |= number > EXACT_LIMIT || number < -EXACT_LIMIT;
    }
    form->leaf_depth = depth;
    form->leaf = widen(form->leaf, kind, form->has_large);
    return form->leaf != TFOS__VALUE_OPAQUE;
}

static int survey(PyObject *value, int depth, struct form *form)
{
    PyObject *own = plain(value);
    int result = -1;

    if (own != NULL) {
        if (own == Py_None)
            result = 1;
        else
            result = is_list(own) ? survey_list(own, depth, form) : survey_leaf(own, depth, form);
        Py_DECREF(own);
    }
    return result;
}

// ---- room

static bool set_bit(struct tfos__block *block, int64_t index, bool is_set)
{
    unsigned char bit = (unsigned char)(1U << index % 8);

    if (!tfos__block_grow(block, (size_t)index / 8 + 1))
        return false;
    if (is_set)
        block->data[index / 8] |= bit;
    else
        block->data[index / 8] &= (unsigned char)~bit;
    return true;
}

static bool set_end(struct level *level, int64_t index, int64_t end)
{
    if (!tfos__block_grow(&level->ends, (size_t)(index + 1) * sizeof end))
        return false;
    memcpy(level->ends.data + (size_t)index * sizeof end, &end, sizeof end);
    return true;
}

static int64_t end_of(const struct level *level, int64_t index)
{
    int64_t end = 0;

    memcpy(&end, level->ends.data + (size_t)index * sizeof end, sizeof end);
    return end;
}

static bool is_bytes(enum tfos__value_kind kind)
{
    return kind == TFOS__VALUE_TEXT || kind == TFOS__VALUE_BYTES;
}

/// Bytes of a leaf of fixed width, of a boolean too: a bit of it is used.
static size_t width_of(enum tfos__value_kind kind)
{
    return kind == TFOS__VALUE_INT || kind == TFOS__VALUE_FLOAT ? sizeof(double) : 1;
}

/// Gives a level whose values are all null ends, so that they can be lists or bytes.
static bool add_ends(struct level *level)
{
    for (int64_t i = 0; i <= level->length; i++) {
        if (!set_end(level, i, 0))
            return false;
    }
    return true;
}

static bool add_leaf(struct tfos__tree *tree, enum tfos__value_kind leaf)
{
    struct level *level = &tree->levels[tree->depth];
    size_t size = (size_t)level->length * width_of(leaf);

    if (is_bytes(leaf))
        return add_ends(level);
    if (!tfos__block_grow(&tree->leaves, size + 1))
        return false;
    memset(tree->leaves.data, 0, size);
    return true;
}

static void make_floats(struct tfos__tree *tree)
{
    for (int64_t i = 0; i < tree->levels[tree->depth].length; i++) {
        unsigned char *place = tree->leaves.data + (size_t)i * sizeof(double);
        int64_t number = 0;
        memcpy(&number, place, sizeof number);
        double wide = (double)number;
        memcpy(place, &wide, sizeof wide);
    }
}

/// Makes the tree as deep and wide as a form needs. DONE, REFUSED or ERROR.
static enum tfos__pack_result adapt(struct tfos__tree *tree, const struct form *form)
{
    bool has_large = tree->has_large || form->has_large;
    enum tfos__value_kind leaf = widen(tree->leaf, form->leaf, has_large);
    int depth = tree->depth > form->depth ? tree->depth : form->depth;

    if (leaf == TFOS__VALUE_OPAQUE || (form->leaf_depth >= 0 && form->leaf_depth < depth) ||
        (tree->leaf != TFOS__VALUE_NULL && depth > tree->depth))
        return TFOS__PACK_REFUSED;
    for (; tree->depth < depth; tree->depth++) {
        if (!add_ends(&tree->levels[tree->depth]))
            return no_memory();
        tree->levels[tree->depth + 1].length = 0;
    }
    if (tree->leaf == TFOS__VALUE_NULL && leaf != TFOS__VALUE_NULL && !add_leaf(tree, leaf))
        return no_memory();
    if (tree->leaf == TFOS__VALUE_INT && leaf == TFOS__VALUE_FLOAT)
        make_floats(tree);
    tree->leaf = leaf;
    tree->has_large = has_large;
    return TFOS__PACK_DONE;
}

// ---- values

static bool write_number(struct tfos__tree *tree, int64_t index, PyObject *value)
{
    size_t at = (size_t)index * sizeof(double);
    double real = 0;
    int64_t whole = 0;

    if (!tfos__block_grow(&tree->leaves, at + sizeof real))
        return false;
    if (tree->leaf == TFOS__VALUE_FLOAT)
        real = value != NULL ? PyFloat_AsDouble(value) : 0;
    else
        whole = value != NULL ? PyLong_AsLongLong(value) : 0;
    memcpy(tree->leaves.data + at,
           tree->leaf == TFOS__VALUE_FLOAT ? (const void *)&real : (const void *)&whole,
           sizeof real);
    return true;
}

static bool write_bytes(struct tfos__tree *tree, int64_t index, PyObject *value)
{
    struct level *level = &tree->levels[tree->depth];
    int64_t start = end_of(level, index);
    PyObject *text = NULL;
    char *data = NULL;
    Py_ssize_t size = 0;

    if (value != NULL && tree->leaf == TFOS__VALUE_TEXT)
        value = text = tfos__atom_encode(value); // it was encoded before, in the survey
    if (value != NULL)
        PyBytes_AsStringAndSize(value, &data, &size);
    bool is_done = tfos__block_grow(&tree->leaves, (size_t)(start + size) + 1) &&
                   set_end(level, index + 1, start + size);
    if (is_done && size > 0)
        memcpy(tree->leaves.data + start, data, (size_t)size);
    Py_XDECREF(text);
    return is_done && !PyErr_Occurred();
}

/// Writes a leaf; NULL is a null one.
static bool write_leaf(struct tfos__tree *tree, PyObject *value)
{
    int64_t index = tree->levels[tree->depth].length;

    switch (tree->leaf) {
    case TFOS__VALUE_INT:
    case TFOS__VALUE_FLOAT:
        return write_number(tree, index, value);
    case TFOS__VALUE_TEXT:
    case TFOS__VALUE_BYTES:
        return write_bytes(tree, index, value);
    default: // a null has a byte, as has a boolean: more than its bit
        if (!tfos__block_grow(&tree->leaves, (size_t)index + 1))
            return false;
        if (tree->leaf == TFOS__VALUE_NULL) {
            tree->leaves.data[index] = 0;
            return true;
        }
        return set_bit(&tree->leaves, index, value == Py_True);
    }
}

/// Puts a value behind the last of its depth. -1 with an exception.
static int put(struct tfos__tree *tree, PyObject *value, int depth);

static int put_list(struct tfos__tree *tree, PyObject *list, int depth)
{
    struct level *level = &tree->levels[depth];
    Py_ssize_t count = list != NULL ? PyObject_Size(list) : 0;

    for (Py_ssize_t i = 0; i < count; i++) {
        if (put(tree, item_of(list, i), depth + 1) < 0)
            return -1;
    }
    if (set_end(level, level->length + 1, tree->levels[depth + 1].length))
        return 0;
    return no_memory();
}

static int put(struct tfos__tree *tree, PyObject *value, int depth)
{
    PyObject *own = plain(value);
    PyObject *there = own != Py_None ? own : NULL;
    struct level *level = &tree->levels[depth];
    int result = 0;

    if (own == NULL)
        return -1;
    if (depth < tree->depth)
        result = put_list(tree, there, depth);
    else if (!write_leaf(tree, there))
        result = no_memory();
    if (result == 0 && !set_bit(&level->validity, level->length, there != NULL))
        result = no_memory();
    if (result == 0)
        level->length++;
    Py_DECREF(own);
    return result;
}

enum tfos__pack_result tfos__tree_append(struct tfos__tree *tree, PyObject *value)
{
    struct form form = {.leaf_depth = -1, .leaf = TFOS__VALUE_NULL};
    int64_t length = tree->levels[0].length;
    PyObject *own = plain(value); // an array becomes lists once, for both passes
    int fits = own != NULL ? survey(own, 0, &form) : -1;
    enum tfos__pack_result result = fits == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;

    if (fits > 0)
        result = adapt(tree, &form);
    if (result == TFOS__PACK_DONE && put(tree, own, 0) < 0) {
        tfos__tree_truncate(tree, length);
        result = TFOS__PACK_ERROR;
    }
    Py_XDECREF(own);
    return result;
}

void tfos__tree_truncate(struct tfos__tree *tree, int64_t length)
{
    tree->levels[0].length = length;
    for (int depth = 0; depth < tree->depth; depth++)
        tree->levels[depth + 1].length = end_of(&tree->levels[depth], tree->levels[depth].length);
    if (length == 0) {
        tree->depth = 0;
        tree->leaf = TFOS__VALUE_NULL;
        tree->has_large = false;
    }
}

size_t tfos__tree_size(const struct tfos__tree *tree)
{
    const struct level *leaves = &tree->levels[tree->depth];
    size_t size = (size_t)leaves->length * width_of(tree->leaf);

    if (is_bytes(tree->leaf))
        size = (size_t)(leaves->length * (int64_t)sizeof(int64_t) + end_of(leaves, leaves->length));
    for (int depth = 0; depth < tree->depth; depth++)
        size += (size_t)tree->levels[depth].length * sizeof(int64_t);
    return size;
}

// ---- showing

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static int64_t count_nulls(const struct level *level)
{
    int64_t count = 0;

    for (int64_t i = 0; i < level->length; i++)
        count += !(level->validity.data[i / 8] >> i % 8 & 1);
    return count;
}

static const char *leaf_format(enum tfos__value_kind kind)
{
    switch (kind) {
    case TFOS__VALUE_BOOL:
        return "b";
    case TFOS__VALUE_INT:
        return "l";
    case TFOS__VALUE_FLOAT:
        return "g";
    case TFOS__VALUE_TEXT:
        return "U";
    case TFOS__VALUE_BYTES:
        return "Z";
    default:
        return "C";
    }
}

static void show_level(struct tfos__tree *tree, int depth)
{
    static const unsigned char nothing[8];
    const void *leaves = tree->leaves.data != NULL ? tree->leaves.data : nothing;
    struct level *level = &tree->levels[depth];
    struct view *view = &tree->views[depth];
    bool is_leaf = depth == tree->depth;
    bool has_bytes = is_leaf && is_bytes(tree->leaf);
    int64_t null_count = count_nulls(level);

    view->schema_child = is_leaf ? NULL : &tree->views[depth + 1].schema;
    view->array_child = is_leaf ? NULL : &tree->views[depth + 1].array;
    view->buffers[0] = null_count > 0 ? level->validity.data : NULL;
    view->buffers[1] = is_leaf && !has_bytes ? leaves : level->ends.data;
    view->buffers[2] = leaves;
    view->schema = (struct ArrowSchema){
        .format = is_leaf ? leaf_format(tree->leaf) : "+L",
        .name = "item",
        .flags = ARROW_FLAG_NULLABLE,
        .n_children = !is_leaf,
        .children = is_leaf ? NULL : &view->schema_child,
        .release = release_schema,
    };
    view->array = (struct ArrowArray){
        .length = level->length,
        .null_count = null_count,
        .n_buffers = has_bytes ? 3 : 2,
        .buffers = view->buffers,
        .n_children = !is_leaf,
        .children = is_leaf ? NULL : &view->array_child,
        .release = release_array,
    };
}

void tfos__tree_show(struct tfos__tree *tree, const char *name, struct ArrowSchema **schema,
                     struct ArrowArray **array)
{
    for (int depth = tree->depth; depth >= 0; depth--)
        show_level(tree, depth);
    tree->views[0].schema.name = name;
    if (tree->leaf == TFOS__VALUE_NULL) { // only nulls and empty lists so far: no type is known
        tfos__metadata_write("tfos.value", "null", tree->metadata);
        tree->views[tree->depth].schema.metadata = tree->metadata;
    }
    *schema = &tree->views[0].schema;
    *array = &tree->views[0].array;
}

struct tfos__tree *tfos__tree_open(void)
{
    struct tfos__tree *tree = PyMem_Calloc(1, sizeof(*tree));

    if (tree == NULL)
        PyErr_NoMemory();
    return tree;
}

void tfos__tree_close(struct tfos__tree *tree)
{
    if (tree == NULL)
        return;
    for (int depth = 0; depth <= DEPTH_LIMIT; depth++) {
        PyMem_Free(tree->levels[depth].validity.data);
        PyMem_Free(tree->levels[depth].ends.data);
    }
    PyMem_Free(tree->leaves.data);
    PyMem_Free(tree);
}
