// SPDX-License-Identifier: Apache-2.0
// A value is surveyed before any of it is written, so that it is refused as a whole. Invariant:
// each level has a validity bit for each of its values and, but for leaves of fixed width, an end;
// all behind is scratch.
#include "tree.h"
#include "atom.h"
#include "series.h"
#include "tree_form.h"

#include <string.h>

#define NOTE_SIZE 64 ///< room for a column's metadata

/// Values of one depth.
struct level {
    int64_t length;
    struct tfos__py_block validity; ///< bits
    struct tfos__py_block ends;     ///< int64 offsets: of lists, and of texts and bytes
};

struct view {
    struct ArrowSchema schema, *schema_child;
    struct ArrowArray array, *array_child;
    const void *buffers[3];
};

struct tfos__py_tree {
    bool mixes_bools;
    int depth;                    ///< of the leaves
    struct tfos__py_value_type leaf; ///< kind BOOL to BYTES; NULL while there is none
    struct level levels[TFOS__TREE_DEPTH + 1];
    struct tfos__py_block leaves;
    struct view views[TFOS__TREE_DEPTH + 1];
    char format[TFOS__FORMAT_SIZE]; ///< of the leaves
    char metadata[NOTE_SIZE];
};

static enum tfos__py_pack_result no_memory(void)
{
    PyErr_NoMemory();
    return TFOS__PACK_ERROR;
}

// ---- room

static bool set_bit(struct tfos__py_block *block, int64_t index, bool is_set)
{
    unsigned char bit = (unsigned char)(1U << index % 8);

    if (!tfos__py_block_grow(block, (size_t)index / 8 + 1))
        return false;
    if (is_set)
        block->data[index / 8] |= bit;
    else
        block->data[index / 8] &= (unsigned char)~bit;
    return true;
}

static bool set_end(struct level *level, int64_t index, int64_t end)
{
    if (!tfos__py_block_grow(&level->ends, (size_t)(index + 1) * sizeof end))
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

static bool is_bytes(const struct tfos__py_value_type *leaf)
{
    return leaf->kind == TFOS__VALUE_TEXT || leaf->kind == TFOS__VALUE_BYTES;
}

/// Bytes of a leaf of fixed width, of a boolean too: a bit of it is used.
static size_t width_of(const struct tfos__py_value_type *leaf)
{
    bool is_number = leaf->kind == TFOS__VALUE_INT || leaf->kind == TFOS__VALUE_FLOAT;

    return is_number ? (size_t)leaf->itemsize : 1;
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

static bool add_leaf(struct tfos__py_tree *tree, const struct tfos__py_value_type *leaf)
{
    struct level *level = &tree->levels[tree->depth];
    size_t size = (size_t)level->length * width_of(leaf);

    if (is_bytes(leaf))
        return add_ends(level);
    if (!tfos__py_block_grow(&tree->leaves, size + 1))
        return false;
    memset(tree->leaves.data, 0, size);
    return true;
}

static bool is_same_leaf(const struct tfos__py_value_type *a, const struct tfos__py_value_type *b)
{
    return a->kind == b->kind && a->letter == b->letter && a->itemsize == b->itemsize;
}

/// Makes the tree as deep and wide as a form needs. DONE, REFUSED or ERROR.
static enum tfos__py_pack_result adapt(struct tfos__py_tree *tree, const struct tfos__py_tree_form *form)
{
    struct tfos__py_value_type leaf =
        tfos__py_tree_form_widen(&tree->leaf, &form->leaf, tree->mixes_bools);
    int depth = tree->depth > form->depth ? tree->depth : form->depth;
    bool has_leaf = tree->leaf.kind != TFOS__VALUE_NULL;

    if (leaf.kind == TFOS__VALUE_OPAQUE || (form->leaf_depth >= 0 && form->leaf_depth < depth) ||
        (has_leaf && depth > tree->depth) || (form->has_large && leaf.kind == TFOS__VALUE_FLOAT) ||
        (has_leaf && tree->levels[0].length > 0 && !is_same_leaf(&leaf, &tree->leaf)))
        return TFOS__PACK_REFUSED;
    for (; tree->depth < depth; tree->depth++) {
        if (!add_ends(&tree->levels[tree->depth]))
            return no_memory();
        tree->levels[tree->depth + 1].length = 0;
    }
    if (!is_same_leaf(&leaf, &tree->leaf) && !add_leaf(tree, &leaf))
        return no_memory();
    tree->leaf = leaf;
    return TFOS__PACK_DONE;
}

// ---- values

static bool write_number(struct tfos__py_tree *tree, int64_t index, PyObject *value)
{
    size_t width = width_of(&tree->leaf), at = (size_t)index * width;
    double real = 0;
    float narrow = 0;
    int64_t whole = 0;
    const void *from = &whole; // whose first bytes are those of a smaller integer

    if (!tfos__py_block_grow(&tree->leaves, at + sizeof real))
        return false;
    if (value != NULL && tree->leaf.kind == TFOS__VALUE_INT)
        whole = PyLong_AsLongLong(value);
    else if (value != NULL)
        real = PyFloat_AsDouble(value);
    narrow = (float)real;
    if (tree->leaf.kind == TFOS__VALUE_FLOAT)
        from = width == sizeof narrow ? (const void *)&narrow : (const void *)&real;
    memcpy(tree->leaves.data + at, from, width);
    return true;
}

static bool write_bytes(struct tfos__py_tree *tree, int64_t index, PyObject *value)
{
    struct level *level = &tree->levels[tree->depth];
    int64_t start = end_of(level, index);
    PyObject *text = NULL;
    char *data = NULL;
    Py_ssize_t size = 0;

    if (value != NULL && tree->leaf.kind == TFOS__VALUE_TEXT)
        value = text = tfos__py_atom_encode(value); // it was encoded before, in the survey
    if (value != NULL)
        PyBytes_AsStringAndSize(value, &data, &size);
    bool is_done = tfos__py_block_grow(&tree->leaves, (size_t)(start + size) + 1) &&
                   set_end(level, index + 1, start + size);
    if (is_done && size > 0)
        memcpy(tree->leaves.data + start, data, (size_t)size);
    Py_XDECREF(text);
    return is_done && !PyErr_Occurred();
}

/// Writes a leaf; NULL is a null one.
static bool write_leaf(struct tfos__py_tree *tree, PyObject *value)
{
    int64_t index = tree->levels[tree->depth].length;

    switch (tree->leaf.kind) {
    case TFOS__VALUE_INT:
    case TFOS__VALUE_FLOAT:
        return write_number(tree, index, value);
    case TFOS__VALUE_TEXT:
    case TFOS__VALUE_BYTES:
        return write_bytes(tree, index, value);
    default: // a null has a byte, as has a boolean: more than its bit
        if (!tfos__py_block_grow(&tree->leaves, (size_t)index + 1))
            return false;
        if (tree->leaf.kind == TFOS__VALUE_NULL) {
            tree->leaves.data[index] = 0;
            return true;
        }
        return set_bit(&tree->leaves, index, value == Py_True);
    }
}

/// Puts a value behind the last of its depth. -1 with an exception.
static int put(struct tfos__py_tree *tree, PyObject *value, int depth);

static int put_list(struct tfos__py_tree *tree, PyObject *list, int depth)
{
    struct level *level = &tree->levels[depth];
    Py_ssize_t count = list != NULL ? PyObject_Size(list) : 0;

    for (Py_ssize_t i = 0; i < count; i++) {
        if (put(tree, tfos__py_tree_form_item(list, i), depth + 1) < 0)
            return -1;
    }
    if (set_end(level, level->length + 1, tree->levels[depth + 1].length))
        return 0;
    return no_memory();
}

static int put(struct tfos__py_tree *tree, PyObject *value, int depth)
{
    PyObject *own = tfos__py_tree_form_plain(value);
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

/// Surveys a value and adapts the tree to it.
static enum tfos__py_pack_result prepare(struct tfos__py_tree *tree, PyObject *value, bool *is_same)
{
    struct tfos__py_tree_form form;
    int fits = tfos__py_tree_form_init(&form, value, tree->mixes_bools);
    enum tfos__py_pack_result result = fits == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;

    if (fits > 0)
        result = adapt(tree, &form);
    if (result == TFOS__PACK_DONE)
        *is_same = !form.is_other && !form.is_mixed &&
                   (form.leaf.kind == TFOS__VALUE_NULL || form.leaf.kind == tree->leaf.kind);
    return result;
}

enum tfos__py_pack_result tfos__py_tree_append(struct tfos__py_tree *tree, PyObject *value, bool *is_same)
{
    int64_t length = tree->levels[0].length;
    enum tfos__py_pack_result result = prepare(tree, value, is_same);

    if (result == TFOS__PACK_DONE && put(tree, value, 0) < 0) {
        tfos__py_tree_truncate(tree, length);
        result = TFOS__PACK_ERROR;
    }
    return result;
}

enum tfos__py_pack_result tfos__py_tree_widen(struct tfos__py_tree *tree, PyObject *value)
{
    bool is_same = false;

    return prepare(tree, value, &is_same);
}

enum tfos__py_pack_result tfos__py_tree_widen_by(struct tfos__py_tree *tree,
                                           const struct tfos__py_value_type *type)
{
    struct tfos__py_tree_form form;

    return tfos__py_tree_form_of_type(&form, type) ? adapt(tree, &form) : TFOS__PACK_REFUSED;
}

void tfos__py_tree_truncate(struct tfos__py_tree *tree, int64_t length)
{
    tree->levels[0].length = length;
    for (int depth = 0; depth < tree->depth; depth++)
        tree->levels[depth + 1].length = end_of(&tree->levels[depth], tree->levels[depth].length);
}

void tfos__py_tree_reset(struct tfos__py_tree *tree)
{
    tree->levels[0].length = 0;
    tree->depth = 0;
    tree->leaf = (struct tfos__py_value_type){.kind = TFOS__VALUE_NULL};
}

int64_t tfos__py_tree_length(const struct tfos__py_tree *tree)
{
    return tree->levels[0].length;
}

size_t tfos__py_tree_size(const struct tfos__py_tree *tree)
{
    const struct level *leaves = &tree->levels[tree->depth];
    size_t size = (size_t)leaves->length * width_of(&tree->leaf);

    if (is_bytes(&tree->leaf))
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

/// Arrow's format of the leaves, of which booleans are bits.
static const char *leaf_format(struct tfos__py_tree *tree)
{
    struct tfos__py_value_type leaf = tree->leaf;

    if (leaf.kind == TFOS__VALUE_BOOL)
        return "b";
    if (leaf.kind == TFOS__VALUE_INT || leaf.kind == TFOS__VALUE_FLOAT)
        leaf.kind = TFOS__VALUE_SCALAR;
    tfos__py_value_type_format(&leaf, tree->format);
    return tree->format;
}

static void show_level(struct tfos__py_tree *tree, int depth)
{
    static const unsigned char nothing[8];
    const void *leaves = tree->leaves.data != NULL ? tree->leaves.data : nothing;
    struct level *level = &tree->levels[depth];
    struct view *view = &tree->views[depth];
    bool is_leaf = depth == tree->depth;
    bool has_bytes = is_leaf && is_bytes(&tree->leaf);
    int64_t null_count = count_nulls(level);

    view->schema_child = is_leaf ? NULL : &tree->views[depth + 1].schema;
    view->array_child = is_leaf ? NULL : &tree->views[depth + 1].array;
    view->buffers[0] = null_count > 0 ? level->validity.data : NULL;
    view->buffers[1] = is_leaf && !has_bytes ? leaves : level->ends.data;
    view->buffers[2] = leaves;
    view->schema = (struct ArrowSchema){
        .format = is_leaf ? leaf_format(tree) : "+L",
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

void tfos__py_tree_show(struct tfos__py_tree *tree, const char *name, struct ArrowSchema **schema,
                     struct ArrowArray **array)
{
    for (int depth = tree->depth; depth >= 0; depth--)
        show_level(tree, depth);
    tree->views[0].schema.name = name;
    if (tree->leaf.kind ==
        TFOS__VALUE_NULL) { // only nulls and empty lists so far: no type is known
        tfos__py_metadata_write("tfos.value", "null", tree->metadata);
        tree->views[tree->depth].schema.metadata = tree->metadata;
    }
    *schema = &tree->views[0].schema;
    *array = &tree->views[0].array;
}

struct tfos__py_tree *tfos__py_tree_open(const struct tfos__py_tree *like, bool mixes_bools)
{
    struct tfos__py_tree *tree = PyMem_Calloc(1, sizeof(*tree));
    struct tfos__py_tree_form form = {.leaf_depth = -1};

    if (tree == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    tree->mixes_bools = mixes_bools;
    if (like != NULL) {
        form.depth = like->depth;
        form.leaf = like->leaf;
    }
    if (adapt(tree, &form) == TFOS__PACK_DONE)
        return tree;
    tfos__py_tree_close(tree);
    return NULL;
}

void tfos__py_tree_close(struct tfos__py_tree *tree)
{
    if (tree == NULL)
        return;
    for (int depth = 0; depth <= TFOS__TREE_DEPTH; depth++) {
        PyMem_Free(tree->levels[depth].validity.data);
        PyMem_Free(tree->levels[depth].ends.data);
    }
    PyMem_Free(tree->leaves.data);
    PyMem_Free(tree);
}
