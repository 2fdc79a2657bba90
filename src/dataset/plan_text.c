// SPDX-License-Identifier: Apache-2.0
// {"structure": 1, "selective": false, "columns": [[path, dtype, form, [lengths], [shape], flags],
// ...]}.
#include "dataset/plan_text.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

enum { FLAG_VECTOR = 1, FLAG_FLEXIBLE = 2, FLAG_PRODUCT = 4, FLAG_NUMBER = 8 };

static json_t *write_numbers(const int64_t *numbers, int count)
{
    json_t *array = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(numbers[i]));
    return array;
}

static json_t *write_feature(const struct tfos__feature *feature)
{
    json_t *path = json_array();
    int flags = (feature->is_vector ? FLAG_VECTOR : 0) |
                (feature->is_flexible ? FLAG_FLEXIBLE : 0) |
                (feature->is_product ? FLAG_PRODUCT : 0) | (feature->is_number ? FLAG_NUMBER : 0);

    for (int i = 0; i < feature->depth; i++)
        json_array_append_new(path, json_string(feature->path[i]));
    return json_pack("[o, s, i, o, o, i]", path, tfos__dtype_name(feature->dtype),
                     (int)feature->form, write_numbers(feature->lengths, feature->level_count),
                     write_numbers(feature->shape, feature->rank), flags);
}

json_t *tfos__plan_write(const struct tfos__plan *plan, struct tfos_error *err)
{
    json_t *columns = json_array();
    json_t *layout = NULL;

    for (int64_t i = 0; i < plan->feature_count; i++)
        json_array_append_new(columns, write_feature(&plan->features[i]));
    if (json_array_size(columns) == (size_t)plan->feature_count)
        layout = json_pack("{s:i, s:b, s:O}", "structure", (int)plan->structure, "selective",
                           (int)plan->is_selective, "columns", columns);
    json_decref(columns);
    if (!layout)
        tfos__fail(err, TFOS_INVALID,
                   "dataset: the columns cannot be told to other nodes: a name is not UTF-8, or "
                   "there is no memory");
    return layout;
}

static bool read_numbers(const json_t *array, int64_t *numbers, int *count)
{
    size_t size = json_array_size(array);

    if (!json_is_array(array) || size > TFOS__LEAF_LEVELS)
        return false;
    *count = (int)size;
    for (size_t i = 0; i < size; i++)
        numbers[i] = (int64_t)json_integer_value(json_array_get(array, i));
    return true;
}

static bool read_feature(const json_t *told, struct tfos__plan *plan)
{
    const char *names[TFOS__LEAF_STEPS];
    const json_t *path = json_array_get(told, 0);
    size_t depth = json_array_size(path);
    const char *dtype = json_string_value(json_array_get(told, 1));
    int64_t form = json_integer_value(json_array_get(told, 2));
    int64_t flags = json_integer_value(json_array_get(told, 5));

    if (depth == 0 || depth > TFOS__LEAF_STEPS || !dtype || form < TFOS_FORM_DENSE ||
        form > TFOS_FORM_SPARSE || tfos__dtype_find(dtype) == 0)
        return false;
    for (size_t i = 0; i < depth; i++) {
        names[i] = json_string_value(json_array_get(path, i));
        if (!names[i])
            return false;
    }
    struct tfos__feature *feature = tfos__plan_add(plan, names, (int)depth);
    if (!feature)
        return false;
    feature->dtype = tfos__dtype_find(dtype);
    feature->form = (enum tfos_column_form)form;
    feature->is_vector = flags & FLAG_VECTOR;
    feature->is_flexible = flags & FLAG_FLEXIBLE;
    feature->is_product = flags & FLAG_PRODUCT;
    feature->is_number = flags & FLAG_NUMBER;
    return read_numbers(json_array_get(told, 3), feature->lengths, &feature->level_count) &&
           read_numbers(json_array_get(told, 4), feature->shape, &feature->rank);
}

enum tfos_status tfos__plan_read(const json_t *layout, struct tfos__plan *plan,
                                 struct tfos_error *err)
{
    const json_t *columns = json_object_get(layout, "columns");
    size_t index = 0;
    json_t *column = NULL;
    bool is_read = json_array_size(columns) > 0;
    enum tfos_status status = TFOS_OK;

    *plan = (struct tfos__plan){
        .structure = (enum tfos_row_structure)tfos__json_int_or(layout, "structure", TFOS_ROW_DICT),
        .is_selective = tfos__json_bool_or(layout, "selective", false)};
    json_array_foreach(columns, index, column) is_read = is_read && read_feature(column, plan);
    if (!is_read)
        status =
            tfos__fail(err, TFOS_INVALID, "dataset: another node told a plan that cannot be read");
    if (status == TFOS_OK)
        status = tfos__plan_sort(plan, err);
    if (status != TFOS_OK)
        tfos__plan_clear(plan);
    return status;
}

enum tfos_status tfos__plan_digest(const json_t *layout, char digest[TFOS__PLAN_DIGEST_SIZE],
                                   struct tfos_error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char code[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    char *text = tfos__json_text(layout);

    if (!text)
        return tfos__no_memory(err, "dataset", "an exchange");
    bool is_made = EVP_Digest(text, strlen(text), code, &size, EVP_sha256(), NULL) &&
                   2 * size + 1 == TFOS__PLAN_DIGEST_SIZE;
    tfos__free(text);
    if (!is_made)
        return tfos__fail(err, TFOS_IO, "dataset: cannot compute a layout's digest");
    for (unsigned int i = 0; i < size; i++) {
        digest[2 * i] = digits[code[i] >> 4];
        digest[2 * i + 1] = digits[code[i] & 15];
    }
    digest[2 * size] = '\0';
    return TFOS_OK;
}
