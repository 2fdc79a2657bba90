// SPDX-License-Identifier: Apache-2.0
// A tensor refers to the column's memory where that has the tensor's type; TensorFlow itself copies
// what is not aligned.
#include "model/input_tensor.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "model/number_cast.h"

#define SHAPE_TEXT 256

enum { TYPE, SIZE, INDICES, VALUES }; // of an MLlib vector

/// A column's values without its lists, and the sizes that these give it.
struct flat {
    const struct tfos__model_input *input;
    struct tfos__arrow_type type;
    const struct ArrowArray *values; ///< NULL: the doubles
    double *doubles;                 ///< owned; of vectors
    int64_t first, count;            ///< of the values
    int64_t shape[TFOS_MODEL_MAX_RANK];
    int rank;
};

// ---- the batch

enum tfos_status tfos__model_batch_open(struct ArrowArray *array, struct tfos__model_batch **out,
                                        struct tfos_error *err)
{
    struct tfos__model_batch *batch = tfos__alloc(1, sizeof(*batch));
    if (!batch) {
        tfos__arrow_array_release(array);
        return tfos__no_memory(err, "model", "a batch");
    }
    batch->array = *array;
    array->release = NULL;
    atomic_init(&batch->reference_count, 1);
    *out = batch;
    return TFOS_OK;
}

void tfos__model_batch_release(struct tfos__model_batch *batch)
{
    if (atomic_fetch_sub(&batch->reference_count, 1) > 1)
        return;
    tfos__arrow_array_release(&batch->array);
    tfos__free(batch);
}

static void let_go(void *data, size_t size, void *context)
{
    (void)data;
    (void)size;
    tfos__model_batch_release(context);
}

// ---- lists and vectors

static enum tfos_status refuse_nulls(const struct flat *flat, const struct ArrowArray *array,
                                     struct tfos_error *err)
{
    int64_t null = tfos__arrow_find_null(array, flat->first, flat->count);
    if (null < 0)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "model: column '%s' has a null (value %lld of a batch), and input '%s' takes "
                      "none: fill it, by df.fillna() for one, or filter it out",
                      flat->input->column, (long long)(null - flat->first), flat->input->name);
}

static enum tfos_status push_size(struct flat *flat, int64_t size, struct tfos_error *err)
{
    if (flat->rank == TFOS_MODEL_MAX_RANK)
        return tfos__fail(err, TFOS_INVALID,
                          "model: column '%s' has more lists in lists than a tensor may have "
                          "dimensions",
                          flat->input->column);
    flat->shape[flat->rank++] = size;
    return TFOS_OK;
}

static enum tfos_status enter_lists(struct flat *flat, const struct ArrowArray *array,
                                    struct tfos_error *err)
{
    int64_t shortest = INT64_MAX, longest = 0;
    for (int64_t i = flat->first; i < flat->first + flat->count; i++) {
        int64_t size = tfos__arrow_list(&flat->type, array, i).count;
        shortest = size < shortest ? size : shortest;
        longest = size > longest ? size : longest;
    }
    if (flat->count > 0 && shortest != longest)
        return tfos__fail(
            err, TFOS_INVALID,
            "model: column '%s' has lists of %lld to %lld values in one batch, and "
            "input '%s' takes rows of one shape: pad them, or export a signature with "
            "a RaggedTensorSpec",
            flat->input->column, (long long)shortest, (long long)longest, flat->input->name);
    TFOS__TRY(push_size(flat, longest, err));
    if (flat->count > 0) {
        struct tfos__arrow_span span =
            tfos__arrow_lists(&flat->type, array, flat->first, flat->count);
        flat->first = span.first;
        flat->count = span.count;
    }
    return TFOS_OK;
}

/// Whether it is Spark's VectorUDT; the type of its lists.
static bool is_vector(const struct ArrowSchema *schema, struct tfos__arrow_type *lists)
{
    static const char *const names[] = {"type", "size", "indices", "values"};
    struct tfos__arrow_type item;
    if (schema->n_children != 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (strcmp(schema->children[i]->name, names[i]) != 0)
            return false;
    return tfos__arrow_type_read(lists, schema->children[VALUES], NULL) == TFOS_OK &&
           lists->kind == TFOS__ARROW_LIST &&
           tfos__arrow_type_read(&item, schema->children[VALUES]->children[0], NULL) == TFOS_OK &&
           tfos__arrow_type_is(&item, TFOS__ARROW_FLOAT, 64);
}

/// One row's vector.
struct vector {
    bool is_sparse;
    int64_t size, count; ///< with the zeros, and without
    const double *values;
    const int32_t *indices;
};

static struct vector read_vector(const struct tfos__arrow_type *lists,
                                 const struct ArrowArray *array, int64_t row)
{
    const struct ArrowArray *const *fields = (const struct ArrowArray *const *)array->children;
    const struct ArrowArray *values = fields[VALUES]->children[0];
    const struct ArrowArray *indices = fields[INDICES]->children[0];
    int64_t at = array->offset + row; // a struct's offset is one into its children, too
    struct tfos__arrow_span span = tfos__arrow_list(lists, fields[VALUES], at);
    struct vector vector = {.count = span.count, .size = span.count};
    const int8_t *kinds = fields[TYPE]->buffers[1];
    vector.is_sparse = kinds[fields[TYPE]->offset + at] == 0;
    if (span.count > 0)
        vector.values = (const double *)values->buffers[1] + values->offset + span.first;
    if (!vector.is_sparse)
        return vector;
    vector.size = ((const int32_t *)fields[SIZE]->buffers[1])[fields[SIZE]->offset + at];
    struct tfos__arrow_span places = tfos__arrow_list(lists, fields[INDICES], at);
    vector.count = places.count < span.count ? places.count : span.count;
    if (vector.count > 0)
        vector.indices = (const int32_t *)indices->buffers[1] + indices->offset + places.first;
    return vector;
}

static enum tfos_status put_vector(const struct flat *flat, const struct vector *vector,
                                   int64_t size, double *out, struct tfos_error *err)
{
    if (vector->size != size)
        return tfos__fail(err, TFOS_INVALID,
                          "model: column '%s' has vectors of %lld and of %lld values, and input "
                          "'%s' takes one size",
                          flat->input->column, (long long)size, (long long)vector->size,
                          flat->input->name);
    for (int64_t i = 0; i < vector->count; i++) {
        int64_t place = vector->is_sparse ? vector->indices[i] : i;
        if (place < 0 || place >= size)
            return tfos__fail(err, TFOS_CORRUPT,
                              "model: column '%s' has a vector of %lld values with an index %lld",
                              flat->input->column, (long long)size, (long long)place);
        out[place] = vector->values[i];
    }
    return TFOS_OK;
}

static enum tfos_status scatter_vectors(struct flat *flat, const struct tfos__arrow_type *lists,
                                        const struct ArrowArray *array, struct tfos_error *err)
{
    int64_t rows = flat->count, size = rows > 0 ? read_vector(lists, array, flat->first).size : 0;
    int64_t count = 0;
    if (size < 0 || __builtin_mul_overflow(rows, size, &count))
        return tfos__no_memory(err, "model", "a batch of vectors");
    flat->doubles = tfos__alloc((size_t)count, sizeof(double));
    if (!flat->doubles)
        return tfos__no_memory(err, "model", "a batch of vectors");
    for (int64_t i = 0; i < rows; i++) {
        struct vector vector = read_vector(lists, array, flat->first + i);
        TFOS__TRY(put_vector(flat, &vector, size, flat->doubles + i * size, err));
    }
    flat->type = tfos__arrow_type_of(TFOS__ARROW_FLOAT, 64, 0);
    flat->first = 0;
    flat->count = count;
    return push_size(flat, size, err);
}

/// Goes down to the values. The caller frees the doubles, also on failure.
static enum tfos_status flatten(struct flat *flat, const struct ArrowSchema *schema,
                                const struct ArrowArray *array, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct ArrowSchema *node = schema;
    struct tfos__arrow_type lists;
    for (;; node = node->children[0], array = array->children[0]) {
        TFOS__TRY(tfos__arrow_type_read(&flat->type, node, err));
        TFOS__TRY(refuse_nulls(flat, array, err));
        if (flat->type.kind != TFOS__ARROW_LIST)
            break;
        TFOS__TRY(enter_lists(flat, array, err));
    }
    if (node == schema && flat->type.kind == TFOS__ARROW_STRUCT && is_vector(node, &lists))
        return scatter_vectors(flat, &lists, array, err);
    bool is_text = flat->type.kind == TFOS__ARROW_TEXT || flat->type.kind == TFOS__ARROW_BINARY;
    if (!is_text && !tfos__model_is_number(&flat->type))
        return tfos__fail(
            err, TFOS_INVALID,
            "model: column '%s' is %s, which no tensor holds: select its parts as columns",
            flat->input->column,
            tfos_arrow_type_text(schema, TFOS_TYPE_NAMES_SPARK, text, sizeof(text)));
    if (is_text != (flat->input->type->kind == TFOS__ARROW_BINARY))
        return tfos__fail(
            err, TFOS_INVALID,
            "model: column '%s' has %s, and input '%s' takes %s: cast the column, or map another",
            flat->input->column, is_text ? "text or bytes" : "numbers", flat->input->name,
            flat->input->type->name);
    flat->values = array;
    return TFOS_OK;
}

// ---- the shape

static const char *write_shape(const int64_t *shape, int rank, char text[SHAPE_TEXT])
{
    struct tfos__bounded_text out = {text, SHAPE_TEXT, 0};
    tfos__bounded_text_append(&out, "(");
    for (int i = 1; i < rank; i++)
        tfos__bounded_text_append(&out, shape[i] < 0 ? "%s?" : "%s%lld", i > 1 ? ", " : "",
                                  (long long)shape[i]);
    tfos__bounded_text_append(&out, ")");
    return text;
}

static bool has_shape(const struct flat *flat, const struct tfos__model_input *input)
{
    bool is_equal = flat->rank == input->rank;
    for (int i = 1; is_equal && i < flat->rank; i++)
        is_equal = input->shape[i] < 0 || input->shape[i] == flat->shape[i];
    return is_equal;
}

/// Gives the values the input's shape; its first dimension is the rows, whatever it says of them.
static enum tfos_status take_shape(struct flat *flat, struct tfos_error *err)
{
    const struct tfos__model_input *input = flat->input;
    char own[SHAPE_TEXT], wanted[SHAPE_TEXT];
    int64_t known = 1, size = 1;
    int open = -1, open_count = 0;
    for (int i = 1; i < flat->rank; i++)
        size *= flat->shape[i];
    for (int i = 1; i < input->rank; i++) {
        if (input->shape[i] < 0) {
            open = i;
            open_count++;
        } else if (__builtin_mul_overflow(known, input->shape[i], &known)) {
            known = 0;
        }
    }
    // Of several open sizes none follows: the model decides.
    if (input->rank < 0 || open_count > 1 || has_shape(flat, input))
        return TFOS_OK;
    bool fits = open_count == 0 ? size == known : known > 0 && size % known == 0;
    if (!fits)
        return tfos__fail(err, TFOS_INVALID,
                          "model: column '%s' has rows of shape %s, and input '%s' takes %s: each "
                          "row needs as many values as that",
                          input->column, write_shape(flat->shape, flat->rank, own), input->name,
                          write_shape(input->shape, input->rank, wanted));
    flat->rank = input->rank;
    for (int i = 1; i < input->rank; i++)
        flat->shape[i] = i == open ? size / known : input->shape[i];
    return TFOS_OK;
}

// ---- the tensor

static void free_texts(void *data, size_t size, void *context)
{
    const struct tfos__model_tensorflow *tf = *(const struct tfos__model_tensorflow **)context;
    for (size_t i = 0; i < size; i += TFOS__MODEL_STRING_SIZE)
        tf->StringDealloc((uint8_t *)data + i);
    tfos__free(context);
}

/// TensorFlow copies texts of its own when it is told to; the memory begins with its functions.
static struct TF_Tensor *make_texts(const struct flat *flat,
                                    const struct tfos__model_tensorflow *tf)
{
    size_t size = (size_t)flat->count * TFOS__MODEL_STRING_SIZE;
    size_t head = sizeof(tf) + TFOS__MODEL_ALIGNMENT;
    const struct tfos__model_tensorflow **block = tfos__alloc(head + size, 1);
    if (!block)
        return NULL;
    *block = tf;
    uint8_t *data = (uint8_t *)(block + 1);
    data += -(uintptr_t)data & (TFOS__MODEL_ALIGNMENT - 1);
    for (int64_t i = 0; i < flat->count; i++) {
        void *string = data + i * TFOS__MODEL_STRING_SIZE;
        struct tfos_view text = tfos__arrow_bytes(&flat->type, flat->values, flat->first + i);
        tf->StringInit(string);
        tf->StringCopy(string, text.data, text.size);
    }
    return tf->NewTensor(flat->input->type->code, flat->shape, flat->rank, data, size, free_texts,
                         (void *)block);
}

static enum tfos_status make_numbers(const struct flat *flat,
                                     const struct tfos__model_tensorflow *tf,
                                     struct tfos__model_batch *batch, struct TF_Tensor **out,
                                     struct tfos_error *err)
{
    const struct tfos__model_type *type = flat->input->type;
    const void *values = flat->values ? flat->values->buffers[1] : flat->doubles;
    int64_t first = flat->values ? flat->values->offset + flat->first : 0;
    size_t size = (size_t)flat->count * (size_t)(type->width / 8);
    char wrong[TFOS__MODEL_NUMBER_TEXT];
    if (flat->values && flat->count > 0 && tfos__model_is_same(&flat->type, type)) {
        atomic_fetch_add(&batch->reference_count, 1);
        *out = tf->NewTensor(type->code, flat->shape, flat->rank,
                             (uint8_t *)(uintptr_t)values + first * (type->width / 8), size, let_go,
                             batch);
        return TFOS_OK;
    }
    *out = tf->AllocateTensor(type->code, flat->shape, flat->rank, size);
    if (!*out || tfos__model_numbers_cast(&flat->type, values, first, flat->count, type,
                                          tf->TensorData(*out), wrong))
        return TFOS_OK;
    tf->DeleteTensor(*out);
    *out = NULL;
    return tfos__fail(
        err, TFOS_INVALID,
        "model: column '%s' has %s, which is no %s as input '%s' takes it: cast the column",
        flat->input->column, wrong, type->name, flat->input->name);
}

enum tfos_status tfos__model_input_make(const struct tfos__model_input *input,
                                        const struct tfos__model_tensorflow *tf,
                                        const struct ArrowSchema *schema,
                                        struct tfos__model_batch *batch, int place,
                                        struct TF_Tensor **out, struct tfos_error *err)
{
    const struct ArrowArray *array = &batch->array;
    struct TF_Tensor *tensor = NULL;
    struct flat flat = {.input = input, .first = array->offset, .count = array->length, .rank = 1};
    flat.shape[0] = array->length;
    enum tfos_status status = flatten(&flat, schema->children[place], array->children[place], err);
    if (status == TFOS_OK)
        status = take_shape(&flat, err);
    if (status == TFOS_OK && input->type->kind == TFOS__ARROW_BINARY)
        tensor = make_texts(&flat, tf);
    else if (status == TFOS_OK)
        status = make_numbers(&flat, tf, batch, &tensor, err);
    if (status == TFOS_OK && !tensor)
        status = tfos__no_memory(err, "model", "a tensor");
    tfos__free(flat.doubles);
    if (status == TFOS_OK)
        *out = tensor;
    return status;
}
