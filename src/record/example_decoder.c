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
    decoder->spellings = tfos__alloc(count, sizeof *decoder->spellings);
    if (!decoder->columns || !decoder->spellings)
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

// Adds a row, or leaves the columns as they were. A plain record is the value of its only column.
static enum tfos_status append_record(struct tfos_example_decoder *decoder, struct tfos_view record,
                                      struct tfos_error *err)
{
    struct tfos__arrow_builder *rows = &decoder->plan.rows;
    enum tfos_status status =
        decoder->plan.type == TFOS_RECORD_BYTES
            ? tfos__example_values_append_text(&decoder->plan.fields[0], record, err)
            : append_features(decoder, record, err);
    if (status == TFOS_OK)
        rows->length++;
    else
        tfos__arrow_builder_truncate(rows, rows->length);
    return status;
}

enum tfos_status tfos_example_decoder_append(struct tfos_example_decoder *decoder,
                                             const struct tfos_view *records, size_t count,
                                             size_t *appended, struct tfos_error *err)
{
    for (*appended = 0; *appended < count; ++*appended) {
        enum tfos_status status = append_record(decoder, records[*appended], err);
        if (status == TFOS_AGAIN && decoder->plan.rows.length > 0)
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
    return decoder->plan.rows.length;
}

uint64_t tfos__record_decoder_size(const struct tfos_example_decoder *decoder)
{
    return tfos__arrow_builder_size(&decoder->plan.rows);
}

// Structs have a row for each of the batch.
static void set_length(struct tfos__arrow_builder *column, int64_t length)
{
    column->length = length;
    for (int64_t i = 0; i < column->child_count; i++)
        if (column->children[i].type.kind == TFOS__ARROW_STRUCT)
            set_length(&column->children[i], length);
}

enum tfos_status tfos_example_decoder_take(struct tfos_example_decoder *decoder,
                                           struct ArrowArray *out, struct tfos_error *err)
{
    set_length(&decoder->plan.rows, decoder->plan.rows.length);
    return tfos__arrow_builder_take(&decoder->plan.rows, out, err);
}

void tfos_example_decoder_close(struct tfos_example_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; decoder->columns && i < decoder->plan.field_count; i++)
        tfos__example_column_clear(&decoder->columns[i]);
    tfos__free(decoder->columns);
    tfos__free(decoder->spellings);
    tfos__column_names_clear(&decoder->names);
    tfos__example_plan_clear(&decoder->plan);
    tfos__free(decoder);
}
