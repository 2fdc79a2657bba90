// SPDX-License-Identifier: Apache-2.0
// Only the batch has a release function: the columns are views of what it owns.
#include "model/output_column.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/// A level of lists, or the values.
struct node {
    struct ArrowArray array;
    struct ArrowArray *child; ///< the next node's
    const void *buffers[TFOS__ARROW_BUFFERS];
};

struct column {
    struct TF_Tensor *tensor; ///< owned
    struct node *nodes;       ///< owned; one for each dimension
    int32_t *offsets;         ///< owned; of texts
    char *bytes;              ///< owned; the same
};

/// What a batch owns.
struct results {
    const struct tfos__model_tensorflow *tf;
    int count;
    struct column *columns;
    struct ArrowArray **children;
};

static void free_results(struct results *results)
{
    for (int i = 0; i < results->count; i++) {
        struct column *column = &results->columns[i];
        if (column->tensor)
            results->tf->DeleteTensor(column->tensor);
        tfos__free(column->nodes);
        tfos__free(column->offsets);
        tfos__free(column->bytes);
    }
    tfos__free(results->columns);
    tfos__free(results->children);
    tfos__free(results);
}

static void release(struct ArrowArray *array)
{
    free_results(array->private_data);
    array->release = NULL;
}

// ---- a column

static enum tfos_status check_shape(const struct tfos__model_output *output,
                                    const struct tfos__model_tensorflow *tf,
                                    const struct TF_Tensor *tensor, int64_t row_count,
                                    struct tfos_error *err)
{
    int rank = tf->NumDims(tensor);
    char found[32] = "one value";
    if (rank > 0)
        snprintf(found, sizeof(found), "%lld rows", (long long)tf->Dim(tensor, 0));
    if (rank == 0 || tf->Dim(tensor, 0) != row_count)
        return tfos__fail(err, TFOS_INVALID,
                          "model: the model gives %s in output '%s' for %lld rows: each row needs "
                          "a result",
                          found, output->name, (long long)row_count);
    if (rank != output->rank)
        return tfos__fail(
            err, TFOS_INVALID,
            "model: output '%s' of the model has %d dimensions here, and its signature says %d",
            output->name, rank, output->rank);
    return TFOS_OK;
}

/// Copies texts behind each other.
static enum tfos_status copy_texts(struct column *column, const struct tfos__model_tensorflow *tf,
                                   const char *name, int64_t count, struct tfos_error *err)
{
    const uint8_t *strings = tf->TensorData(column->tensor);
    size_t size = 0, used = 0;
    for (int64_t i = 0; i < count; i++)
        size += tf->StringGetSize(strings + i * TFOS__MODEL_STRING_SIZE);
    if (size > INT32_MAX)
        return tfos__fail(err, TFOS_INVALID,
                          "model: output '%s' of the model has 2 GiB or more in one batch: set a "
                          "smaller batch_size",
                          name);
    column->offsets = tfos__alloc((size_t)count + 1, sizeof(*column->offsets));
    column->bytes = tfos__alloc(size, 1);
    if (!column->offsets || !column->bytes)
        return tfos__no_memory(err, "model", "an output");
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *string = strings + i * TFOS__MODEL_STRING_SIZE;
        size_t part = tf->StringGetSize(string);
        if (part > 0)
            memcpy(column->bytes + used, tf->StringGetDataPointer(string), part);
        used += part;
        column->offsets[i + 1] = (int32_t)used;
    }
    return TFOS_OK;
}

static enum tfos_status make_array(struct column *column, const struct tfos__model_tensorflow *tf,
                                   const struct tfos__model_output *output, struct tfos_error *err)
{
    int64_t length = 1;
    column->nodes = tfos__alloc((size_t)output->rank, sizeof(*column->nodes));
    if (!column->nodes)
        return tfos__no_memory(err, "model", "an output");
    for (int i = 0; i < output->rank; i++) {
        struct node *node = &column->nodes[i];
        bool is_last = i == output->rank - 1;
        length *= tf->Dim(column->tensor, i);
        node->child = is_last ? NULL : &node[1].array;
        node->array = (struct ArrowArray){.length = length,
                                          .n_buffers = 1,
                                          .n_children = !is_last,
                                          .buffers = node->buffers,
                                          .children = is_last ? NULL : &node->child};
    }
    struct node *values = &column->nodes[output->rank - 1];
    bool is_text = output->type->kind == TFOS__ARROW_BINARY;
    if (is_text)
        TFOS__TRY(copy_texts(column, tf, output->name, length, err));
    values->array.n_buffers = is_text ? 3 : 2;
    values->buffers[1] = is_text ? column->offsets : tf->TensorData(column->tensor);
    values->buffers[2] = column->bytes;
    return TFOS_OK;
}

/// Booleans are bytes, which a note says.
static enum tfos_status make_schema(struct ArrowSchema *schema,
                                    const struct tfos__model_tensorflow *tf,
                                    const struct tfos__model_output *output,
                                    const struct TF_Tensor *tensor, struct tfos_error *err)
{
    static const char note[] = "array b1";
    const struct tfos__model_type *type = output->type;
    bool is_bool = type->kind == TFOS__ARROW_BOOL, is_text = type->kind == TFOS__ARROW_BINARY;
    struct ArrowSchema *node = schema;
    for (int i = 1; i < output->rank; i++) {
        TFOS__TRY(tfos__arrow_schema_init(node, tfos__arrow_fixed_list_type(tf->Dim(tensor, i)),
                                          i == 1 ? output->column : "item", 1, err));
        node = node->children[0];
    }
    TFOS__TRY(tfos__arrow_schema_init(
        node,
        tfos__arrow_type_of(is_bool ? TFOS__ARROW_UINT : type->kind, is_text ? 32 : type->width, 0),
        output->rank == 1 ? output->column : "item", 0, err));
    return is_bool ? tfos__arrow_schema_note(schema, "tfos.value",
                                             (struct tfos_view){note, sizeof(note) - 1}, err)
                   : TFOS_OK;
}

// ---- the batch

static struct results *open_results(const struct tfos__model_tensorflow *tf,
                                    struct TF_Tensor **tensors, int count)
{
    struct results *results = tfos__alloc(1, sizeof(*results));
    struct column *columns = tfos__alloc((size_t)count, sizeof(*columns));
    struct ArrowArray **children = tfos__alloc((size_t)count, sizeof(*children));
    if (!results || !columns || !children) {
        tfos__free(results);
        tfos__free(columns);
        tfos__free(children);
        for (int i = 0; i < count; i++)
            if (tensors[i])
                tf->DeleteTensor(tensors[i]);
        return NULL;
    }
    *results = (struct results){tf, count, columns, children};
    for (int i = 0; i < count; i++)
        columns[i].tensor = tensors[i];
    return results;
}

enum tfos_status tfos__model_outputs_make(const struct tfos__model_output *outputs, int count,
                                          const struct tfos__model_tensorflow *tf,
                                          struct TF_Tensor **tensors, int64_t row_count,
                                          struct ArrowSchema *schema, struct ArrowArray *array,
                                          struct tfos_error *err)
{
    static const void *no_nulls[1];
    struct ArrowSchema made = {0};
    struct results *results = open_results(tf, tensors, count);
    if (!results)
        return tfos__no_memory(err, "model", "the outputs");
    enum tfos_status status = tfos__arrow_schema_init_struct(&made, count, err);
    for (int i = 0; status == TFOS_OK && i < count; i++) {
        struct column *column = &results->columns[i];
        status = check_shape(&outputs[i], tf, column->tensor, row_count, err);
        if (status == TFOS_OK)
            status = make_array(column, tf, &outputs[i], err);
        if (status == TFOS_OK)
            status = make_schema(made.children[i], tf, &outputs[i], column->tensor, err);
        if (status == TFOS_OK)
            results->children[i] = &column->nodes[0].array;
    }
    if (status != TFOS_OK) {
        tfos__arrow_schema_release(&made);
        free_results(results);
        return status;
    }
    *schema = made;
    *array = (struct ArrowArray){.length = row_count,
                                 .n_buffers = 1,
                                 .n_children = count,
                                 .buffers = no_nulls,
                                 .children = results->children,
                                 .release = release,
                                 .private_data = results};
    return TFOS_OK;
}
