// SPDX-License-Identifier: Apache-2.0
// A record's features are found first and appended then, column by column.
#include <string.h>
#include <tfos/example.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/column_names.h"
#include "record/example_column.h"
#include "record/record.h"

/// Names of features of the record at hand that are a column's but for letter case; or none.
struct spellings {
    struct tfos_view other; ///< of one
    struct tfos_view clash; ///< of a second one; only where letter case is ignored
};

struct tfos_example_decoder {
    struct tfos__example_plan plan;
    struct tfos__example_column *columns; ///< one a field of the plan; owned
    struct tfos__example_extent *marks;   ///< where the columns stood before a record; owned
    int64_t row_count;
    struct tfos__column_names names;
    bool ignores_case;
    struct spellings *spellings; ///< one a column; owned
    bool has_other;              ///< one of them is set
    enum tfos_status status;     ///< of finding the columns of a record's features
    struct tfos_error failure;
};

static bool is_same_name(struct tfos_view a, struct tfos_view b)
{
    return a.data && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

// Letter case is ignored, and another feature of the column's name may have been there.
static void note_spelling(const struct tfos__example_column *column, bool is_same,
                          struct tfos_view name, struct spellings *spellings)
{
    bool is_present = column->plain.is_present || column->list.is_present;
    if (is_same && spellings->other.data) {
        spellings->clash = name;
    } else if (!is_same && is_present && !is_same_name(spellings->other, name)) {
        if (!spellings->other.data)
            spellings->other = (struct tfos_view){column->field->name, column->field->name_size};
        spellings->clash = name;
    } else if (!is_same) {
        spellings->other = name;
    }
}

// A feature that has no column's very name, or comes behind such a one.
static struct tfos__feature *find_spelled(struct tfos_example_decoder *decoder,
                                          struct tfos_view name, uint32_t number, bool is_list)
{
    bool is_same = number < decoder->plan.field_count;
    enum tfos_status status = is_same ? TFOS_OK
                                      : tfos__column_names_find_other(&decoder->names, name, number,
                                                                      &number, &decoder->failure);
    if (status < 0)
        decoder->status = status;
    if (status < 0 || number == TFOS__NAME_UNKNOWN)
        return NULL;
    struct tfos__example_column *column = &decoder->columns[number];
    struct spellings *spellings = &decoder->spellings[number];
    if (decoder->ignores_case)
        note_spelling(column, is_same, name, spellings);
    else if (!is_same)
        spellings->other = name;
    decoder->has_other |= !is_same;
    if (!is_same && !decoder->ignores_case)
        return NULL;
    return is_list ? &column->list : &column->plain;
}

static struct tfos__feature *find_feature(void *context, struct tfos_view name, bool is_list)
{
    struct tfos_example_decoder *decoder = context;
    uint32_t number = tfos__name_index_next(&decoder->names.names, name);
    if (number >= decoder->plan.field_count || decoder->has_other)
        return find_spelled(decoder, name, number, is_list);
    return is_list ? &decoder->columns[number].list : &decoder->columns[number].plain;
}

static enum tfos_status prepare(struct tfos_example_decoder *decoder, struct tfos_error *err)
{
    size_t count = decoder->plan.field_count;
    decoder->columns = tfos__alloc(count, sizeof *decoder->columns);
    decoder->marks = tfos__alloc(count, sizeof *decoder->marks);
    decoder->spellings = tfos__alloc(count, sizeof *decoder->spellings);
    if (!decoder->columns || !decoder->marks || !decoder->spellings)
        return tfos__no_memory(err, "record", "a decoder");
    for (size_t i = 0; i < count; i++)
        decoder->columns[i].field = &decoder->plan.fields[i];
    return tfos__column_names_init(&decoder->names, &decoder->plan, decoder->ignores_case, err);
}

enum tfos_status tfos_example_decoder_open(const struct ArrowSchema *schema,
                                           const struct tfos_example_decoder_options *options,
                                           struct tfos_example_decoder **out,
                                           struct tfos_error *err)
{
    static const struct tfos_example_decoder_options defaults;
    struct tfos_example_decoder *decoder = tfos__alloc(1, sizeof *decoder);
    if (!decoder)
        return tfos__no_memory(err, "record", "a decoder");
    if (!options)
        options = &defaults;
    decoder->ignores_case = options->ignore_case;
    decoder->plan.type = options->type;
    decoder->plan.type_names = options->type_names;
    enum tfos_status status = tfos__example_plan_init(&decoder->plan, schema, err);
    if (status == TFOS_OK)
        status = prepare(decoder, err);
    if (status < 0)
        tfos_example_decoder_close(decoder);
    else
        *out = decoder;
    return status;
}

// A plain record is the value of its only column.
static enum tfos_status append_plain(struct tfos_example_decoder *decoder, struct tfos_view record,
                                     struct tfos_error *err)
{
    struct tfos__example_column *column = &decoder->columns[0];
    TFOS__TRY(tfos__example_values_append_text(column, record, err));
    if (!column->field->has_wide_bytes && column->extent.byte_count > INT32_MAX)
        return TFOS_AGAIN;
    column->extent.rows++;
    return TFOS_OK;
}

static enum tfos_status check_name(const struct tfos_example_decoder *decoder, size_t number,
                                   struct tfos_error *err)
{
    const struct tfos__example_column *column = &decoder->columns[number];
    struct tfos_view other = decoder->spellings[number].other;
    struct tfos_view clash = decoder->spellings[number].clash;
    if (clash.data)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: the record has the features %.*s and %.*s, which differ in "
                          "letter case only",
                          column->field->name, tfos__name_width(other), (const char *)other.data,
                          tfos__name_width(clash), (const char *)clash.data);
    if (!other.data || column->plain.is_present || column->list.is_present)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT,
                      "column %s: the record has no such feature, but %.*s, whose name differs in "
                      "letter case only: name the column as the feature, or where both exist put "
                      "both into the schema",
                      column->field->name, tfos__name_width(other), (const char *)other.data);
}

// Refuses the record for a name of one of its features, and forgets the names.
static enum tfos_status check_names(struct tfos_example_decoder *decoder, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    for (size_t i = 0; i < decoder->plan.field_count; i++) {
        if (status == TFOS_OK)
            status = check_name(decoder, i, err);
        decoder->spellings[i] = (struct spellings){0};
    }
    decoder->has_other = false;
    return status;
}

static enum tfos_status append_features(struct tfos_example_decoder *decoder,
                                        struct tfos_view record, struct tfos_error *err)
{
    size_t count = decoder->plan.field_count;
    for (size_t i = 0; i < count; i++) {
        tfos__feature_reset(&decoder->columns[i].plain);
        tfos__feature_reset(&decoder->columns[i].list);
    }
    tfos__column_names_restart(&decoder->names);
    decoder->status = TFOS_OK;
    enum tfos_status status =
        tfos__features_read(record, decoder->plan.type, find_feature, decoder, err);
    if (status == TFOS_OK && decoder->status < 0) {
        status = decoder->status;
        if (err)
            *err = decoder->failure;
    }
    if (decoder->has_other) {
        enum tfos_status checked = check_names(decoder, status == TFOS_OK ? err : NULL);
        status = status == TFOS_OK ? checked : status;
    }
    for (size_t i = 0; i < count && status == TFOS_OK; i++)
        status = tfos__example_column_append(&decoder->columns[i], err);
    return status;
}

// Adds a row, or leaves the columns as they were.
static enum tfos_status append_record(struct tfos_example_decoder *decoder, struct tfos_view record,
                                      struct tfos_error *err)
{
    for (size_t i = 0; i < decoder->plan.field_count; i++)
        decoder->marks[i] = decoder->columns[i].extent;
    enum tfos_status status = decoder->plan.type == TFOS_RECORD_BYTES
                                  ? append_plain(decoder, record, err)
                                  : append_features(decoder, record, err);
    if (status == TFOS_OK) {
        decoder->row_count++;
        return TFOS_OK;
    }
    for (size_t i = 0; i < decoder->plan.field_count; i++)
        decoder->columns[i].extent = decoder->marks[i];
    return status;
}

enum tfos_status tfos_example_decoder_append(struct tfos_example_decoder *decoder,
                                             const struct tfos_view *records, size_t count,
                                             size_t *appended, struct tfos_error *err)
{
    for (*appended = 0; *appended < count; ++*appended) {
        enum tfos_status status = append_record(decoder, records[*appended], err);
        if (status == TFOS_AGAIN && decoder->row_count > 0)
            return TFOS_OK;
        if (status == TFOS_AGAIN)
            return tfos__fail(err, TFOS_INVALID,
                              "record: one of %zu bytes is more than offsets of 32 bits "
                              "reach: ask for large_string, large_binary, large_list",
                              records[*appended].size);
        if (status < 0) {
            tfos__fail_prefix(err, "record");
            return status;
        }
    }
    return TFOS_OK;
}

int64_t tfos_example_decoder_row_count(const struct tfos_example_decoder *decoder)
{
    return decoder->row_count;
}

uint64_t tfos__record_decoder_size(const struct tfos_example_decoder *decoder)
{
    uint64_t size = 0;
    for (size_t i = 0; i < decoder->plan.field_count; i++) {
        const struct tfos__example_column *column = &decoder->columns[i];
        size +=
            (uint64_t)column->extent.value_count * column->field->width + column->extent.byte_count;
    }
    return size;
}

/// A struct array with its children.
struct tree {
    struct ArrowArray **children;
    struct ArrowArray items[];
};

static void release_tree(struct ArrowArray *array)
{
    struct tree *tree = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (tree->items[i].release)
            tree->items[i].release(&tree->items[i]);
    tfos__free(tree->children);
    tfos__free(tree);
    array->release = NULL;
}

/// How far taking the columns has come.
struct cursor {
    size_t shape, column;
};

static enum tfos_status take_node(struct tfos_example_decoder *decoder, struct cursor *cursor,
                                  struct ArrowArray *out, struct tfos_error *err);

static enum tfos_status take_struct(struct tfos_example_decoder *decoder, struct cursor *cursor,
                                    int64_t count, struct ArrowArray *out, struct tfos_error *err)
{
    static const void *const no_validity[1];
    struct tree *tree = tfos__alloc(1, sizeof *tree + (size_t)count * sizeof tree->items[0]);
    if (!tree)
        return tfos__no_memory(err, "record", "an array");
    tree->children = tfos__alloc((size_t)count, sizeof(struct ArrowArray *));
    if (!tree->children) {
        tfos__free(tree);
        return tfos__no_memory(err, "record", "an array");
    }
    *out = (struct ArrowArray){.length = decoder->row_count,
                               .n_buffers = 1,
                               .buffers = (const void **)(uintptr_t)no_validity,
                               .n_children = count,
                               .children = tree->children,
                               .release = release_tree,
                               .private_data = tree};
    for (int64_t i = 0; i < count; i++) {
        tree->children[i] = &tree->items[i];
        enum tfos_status status = take_node(decoder, cursor, &tree->items[i], err);
        if (status < 0) {
            out->release(out);
            return status;
        }
    }
    return TFOS_OK;
}

static enum tfos_status take_node(struct tfos_example_decoder *decoder, struct cursor *cursor,
                                  struct ArrowArray *out, struct tfos_error *err)
{
    int64_t count = decoder->plan.shape[cursor->shape++];
    if (count >= 0)
        return take_struct(decoder, cursor, count, out, err);
    return tfos__example_column_take(&decoder->columns[cursor->column++], out, err);
}

enum tfos_status tfos_example_decoder_take(struct tfos_example_decoder *decoder,
                                           struct ArrowArray *out, struct tfos_error *err)
{
    struct ArrowArray array;
    struct cursor cursor = {0};
    enum tfos_status status = take_node(decoder, &cursor, &array, err);
    if (status == TFOS_OK)
        *out = array;
    for (size_t i = 0; i < decoder->plan.field_count; i++)
        decoder->columns[i].extent = (struct tfos__example_extent){0};
    decoder->row_count = 0;
    return status;
}

void tfos_example_decoder_close(struct tfos_example_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; decoder->columns && i < decoder->plan.field_count; i++)
        tfos__example_column_clear(&decoder->columns[i]);
    tfos__free(decoder->columns);
    tfos__free(decoder->marks);
    tfos__free(decoder->spellings);
    tfos__column_names_clear(&decoder->names);
    tfos__example_plan_clear(&decoder->plan);
    tfos__free(decoder);
}
