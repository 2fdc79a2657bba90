// SPDX-License-Identifier: Apache-2.0
// The features of a record are found first, then appended column by column. A row of a column is a
// value, a list or a list of lists, as its field says. Only rows have validity bits: the lists of a
// record hold no nulls.
#include <string.h>
#include <tfos/example.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/list_decoder.h"
#include "record/name_index.h"
#include "record/record.h"

#define OTHERS_LIMIT 4096     // names of features that are no columns and are kept in the index
#define OTHER_SIZE_LIMIT 1024 // bytes of such a name

struct column {
    const struct tfos__record_field *field;  ///< borrowed
    struct tfos__record_feature plain, list; ///< of the current record
    /// A feature whose name differs from the column's in letter case only; or none. Where letter
    /// case is ignored and two features have such names, `clash` is the second.
    struct tfos_view other, clash;
};

struct tfos_example_decoder {
    struct tfos__record_schema schema;
    struct column *columns; ///< one a field of the schema; owned
    /// The columns by their names, and behind them names of features that are no columns. A value
    /// is the column of the same name but for letter case, or UNKNOWN.
    struct tfos__record_name_index names;
    struct tfos__record_name_index folded; ///< the columns by their folded names
    struct tfos__buffer folding;           ///< a folded name
    bool ignores_case;
    bool has_other;          ///< a column of the current record has one
    enum tfos_status status; ///< of finding the columns of the current record's features
    struct tfos_error failure;
};

// ---- names

static enum tfos_status fold(struct tfos_example_decoder *decoder, struct tfos_view name,
                             struct tfos_view *folded, struct tfos_error *err)
{
    decoder->folding.begin = decoder->folding.end = 0;
    TFOS__TRY(tfos__text_fold_case(name, &decoder->folding, err));
    *folded = (struct tfos_view){decoder->folding.data, decoder->folding.end};
    return TFOS_OK;
}

static enum tfos_status add_names(struct tfos_example_decoder *decoder, struct tfos_error *err)
{
    for (uint32_t i = 0; i < decoder->schema.field_count; i++) {
        const struct tfos__record_field *field = &decoder->schema.fields[i];
        struct tfos_view name = {field->name, field->name_size}, folded;
        TFOS__TRY(tfos__record_name_index_add(&decoder->names, name, i, err));
        TFOS__TRY(fold(decoder, name, &folded, err));
        uint32_t same = tfos__record_name_index_find(&decoder->folded, folded);
        if (same != TFOS__NAME_UNKNOWN && decoder->ignores_case)
            return tfos__fail(err, TFOS_INVALID,
                              "record: the columns %s and %s differ in letter case only",
                              decoder->schema.fields[same].name, field->name);
        TFOS__TRY(tfos__record_name_index_add(&decoder->folded, folded, i, err));
    }
    return TFOS_OK;
}

// The column whose name differs from that of a feature in letter case only. Adds the name to the
// index, so that it is folded once.
static enum tfos_status find_folded(struct tfos_example_decoder *decoder, struct tfos_view name,
                                    uint32_t *column, struct tfos_error *err)
{
    struct tfos_view folded;
    TFOS__TRY(fold(decoder, name, &folded, err));
    *column = tfos__record_name_index_find(&decoder->folded, folded);
    if (*column != TFOS__NAME_UNKNOWN && decoder->schema.fields[*column].is_name_exact)
        *column = TFOS__NAME_UNKNOWN;
    if (decoder->names.count - decoder->schema.field_count >= OTHERS_LIMIT ||
        name.size > OTHER_SIZE_LIMIT)
        return TFOS_OK;
    return tfos__record_name_index_add(&decoder->names, name, *column, err);
}

static bool is_same_name(struct tfos_view a, struct tfos_view b)
{
    return a.data && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

// Notes the spelling of a feature's name where letter case is ignored.
static void note_spelling(struct column *column, bool is_exact, struct tfos_view name)
{
    bool is_present = column->plain.is_present || column->list.is_present;
    if (is_exact && column->other.data) {
        column->clash = name;
    } else if (!is_exact && is_present && !is_same_name(column->other, name)) {
        if (!column->other.data)
            column->other = (struct tfos_view){column->field->name, column->field->name_size};
        column->clash = name;
    } else if (!is_exact) {
        column->other = name;
    }
}

// A feature whose name is no column's, or one behind such a feature. `number` is that of its name.
static struct tfos__record_feature *find_other(struct tfos_example_decoder *decoder,
                                               struct tfos_view name, uint32_t number, bool is_list)
{
    bool is_exact = number < decoder->schema.field_count;
    if (number != TFOS__NAME_UNKNOWN)
        number = decoder->names.names[number].value;
    else if (decoder->status == TFOS_OK)
        decoder->status = find_folded(decoder, name, &number, &decoder->failure);
    if (decoder->status < 0 || number == TFOS__NAME_UNKNOWN)
        return NULL;
    struct column *column = &decoder->columns[number];
    if (decoder->ignores_case)
        note_spelling(column, is_exact, name);
    else if (!is_exact)
        column->other = name;
    decoder->has_other |= !is_exact;
    if (!is_exact && !decoder->ignores_case)
        return NULL;
    return is_list ? &column->list : &column->plain;
}

static struct tfos__record_feature *find_feature(void *context, struct tfos_view name, bool is_list)
{
    struct tfos_example_decoder *decoder = context;
    uint32_t number = tfos__record_name_index_next(&decoder->names, name);
    if (number >= decoder->schema.field_count || decoder->has_other)
        return find_other(decoder, name, number, is_list);
    return is_list ? &decoder->columns[number].list : &decoder->columns[number].plain;
}

static enum tfos_status check_name(const struct column *column, struct tfos_error *err)
{
    struct tfos_view other = column->other, clash = column->clash;
    if (clash.data)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: the record has the features %.*s and %.*s, which differ in "
                          "letter case only",
                          column->field->name, tfos__record_name_width(other),
                          (const char *)other.data, tfos__record_name_width(clash),
                          (const char *)clash.data);
    if (!other.data || column->plain.is_present || column->list.is_present)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT,
                      "column %s: the record has no such feature, but %.*s, whose name differs in "
                      "letter case only: name the column as the feature, or where both exist put "
                      "both into the schema",
                      column->field->name, tfos__record_name_width(other),
                      (const char *)other.data);
}

// ---- rows

// A null list is empty, or, of a fixed size, full of zeros.
static enum tfos_status append_null(const struct column *column, struct tfos_error *err)
{
    if (!column->field->is_nullable)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: the record has none, and the schema says that none is null",
                          column->field->name);
    return tfos__arrow_builder_append_null(column->field->levels[0], err);
}

// Appends the values of a step, whose chunks begin at `*chunk`, which moves behind them.
static enum tfos_status append_step(const struct column *column,
                                    const struct tfos__record_feature *feature, uint32_t step,
                                    uint32_t *chunk, int64_t *count, struct tfos_error *err)
{
    const struct tfos__arrow_builder *values = tfos__record_field_values(column->field);
    int64_t before = values->length;
    for (; *chunk < feature->chunk_count && feature->chunks[*chunk].step == step; ++*chunk) {
        const struct tfos__record_feature_chunk *at = &feature->chunks[*chunk];
        TFOS__PASS(tfos__record_list_decode(column->field, at->kind, at->list, err));
    }
    *count = values->length - before;
    return TFOS_OK;
}

// Ends a list of `level`, which holds `count` lists or values.
static enum tfos_status end_list(const struct column *column, int level, int64_t count,
                                 struct tfos_error *err)
{
    const struct tfos__record_field *field = column->field;
    struct tfos__arrow_builder *list = field->levels[level];
    if (list->type.layout == TFOS__ARROW_FIXED_LIST && count != list->type.list_size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: a list of %lld, where each of %s has %lld: read it as lists "
                          "of any size",
                          field->name, (long long)count, field->type,
                          (long long)list->type.list_size);
    return tfos__arrow_builder_end_list(list, err);
}

// Appends a context feature: a value or a list.
static enum tfos_status append_context(const struct column *column, struct tfos_error *err)
{
    const struct tfos__record_field *field = column->field;
    char text[TFOS_TYPE_TEXT_SIZE];
    uint32_t chunk = 0;
    int64_t count = 0;
    if (column->plain.chunk_count == 0)
        return append_null(column, err);
    TFOS__PASS(append_step(column, &column->plain, 0, &chunk, &count, err));
    if (field->level_count == 1)
        return end_list(column, 0, count, err);
    if (count > 1)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: %lld values, where %s is one: read it as %s", field->name,
                          (long long)count, field->type,
                          tfos__record_field_type_for(field, field->kind, 1, text));
    return count == 0 ? append_null(column, err) : TFOS_OK;
}

// Appends a feature list: a list of lists, or a list of one value of each of its features.
static enum tfos_status append_list(const struct column *column, struct tfos_error *err)
{
    const struct tfos__record_field *field = column->field;
    uint32_t chunk = 0;
    int64_t count = 0;
    for (uint32_t step = 0; step < column->list.step_count; step++) {
        TFOS__PASS(append_step(column, &column->list, step, &chunk, &count, err));
        if (field->level_count == 2)
            TFOS__PASS(end_list(column, 1, count, err));
        else if (count != 1)
            return tfos__fail(err, TFOS_CORRUPT,
                              "column %s: feature %u of the feature list has %lld values, where "
                              "%s has one: read it as lists of lists",
                              field->name, step, (long long)count, field->type);
    }
    return end_list(column, 0, column->list.step_count, err);
}

static enum tfos_status append_row(const struct column *column, struct tfos_error *err)
{
    const struct tfos__record_field *field = column->field;
    if (field->level_count < 2 && column->plain.is_present && column->list.is_present)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: the record has it as a context feature and as a feature list",
                          field->name);
    if (field->level_count == 0 && column->list.is_present)
        return tfos__fail(
            err, TFOS_CORRUPT,
            "column %s: a feature list, where %s is no list: read it as lists of lists",
            field->name, field->type);
    if (field->level_count == 2 && column->plain.is_present)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: a context feature, where %s is lists of lists: read it as a "
                          "list, or as one value",
                          field->name, field->type);
    if (column->list.is_present)
        return append_list(column, err);
    return column->plain.is_present ? append_context(column, err) : append_null(column, err);
}

static enum tfos_status append_features(struct tfos_example_decoder *decoder,
                                        struct tfos_view record, struct tfos_error *err)
{
    size_t count = decoder->schema.field_count;
    for (size_t i = 0; i < count; i++) {
        struct column *column = &decoder->columns[i];
        tfos__record_feature_reset(&column->plain);
        tfos__record_feature_reset(&column->list);
    }
    tfos__record_name_index_restart(&decoder->names);
    decoder->status = TFOS_OK;
    enum tfos_status status =
        tfos__record_features_read(record, decoder->schema.type, find_feature, decoder, err);
    if (status == TFOS_OK && decoder->status < 0) {
        status = decoder->status;
        if (err)
            *err = decoder->failure;
    }
    for (size_t i = 0; i < count && decoder->has_other; i++) {
        if (status == TFOS_OK)
            status = check_name(&decoder->columns[i], err);
        decoder->columns[i].other = decoder->columns[i].clash = (struct tfos_view){0};
    }
    decoder->has_other = false;
    for (size_t i = 0; i < count && status == TFOS_OK; i++)
        status = append_row(&decoder->columns[i], err);
    return status;
}

// Appends a row, or leaves the columns as they were. A plain record is the value of its only
// column.
static enum tfos_status append_record(struct tfos_example_decoder *decoder, struct tfos_view record,
                                      struct tfos_error *err)
{
    struct tfos__arrow_builder *rows = &decoder->schema.rows;
    enum tfos_status status =
        decoder->schema.type == TFOS_RECORD_BYTES
            ? tfos__record_list_decode_bytes(&decoder->schema.fields[0], record, err)
            : append_features(decoder, record, err);
    if (status == TFOS_OK)
        rows->length++;
    else
        tfos__arrow_builder_truncate(rows, rows->length);
    return status;
}

// ---- the decoder

static enum tfos_status prepare(struct tfos_example_decoder *decoder, struct tfos_error *err)
{
    size_t count = decoder->schema.field_count;
    decoder->columns = tfos__alloc(count, sizeof(*decoder->columns));
    if (!decoder->columns)
        return tfos__no_memory(err, "record", "a decoder");
    for (size_t i = 0; i < count; i++)
        decoder->columns[i].field = &decoder->schema.fields[i];
    return add_names(decoder, err);
}

enum tfos_status tfos_example_decoder_open(const struct ArrowSchema *schema,
                                           const struct tfos_example_decoder_options *options,
                                           struct tfos_example_decoder **out,
                                           struct tfos_error *err)
{
    static const struct tfos_example_decoder_options defaults;
    struct tfos_example_decoder *decoder = tfos__alloc(1, sizeof(*decoder));
    if (!decoder)
        return tfos__no_memory(err, "record", "a decoder");
    if (!options)
        options = &defaults;
    decoder->ignores_case = options->ignore_case;
    decoder->schema.type = options->type;
    decoder->schema.type_names = options->type_names;
    enum tfos_status status = tfos__record_schema_init(&decoder->schema, schema, err);
    if (status == TFOS_OK)
        status = prepare(decoder, err);
    if (status < 0)
        tfos_example_decoder_close(decoder);
    else
        *out = decoder;
    return status;
}

enum tfos_status tfos_example_decoder_append(struct tfos_example_decoder *decoder,
                                             const struct tfos_view *records, size_t count,
                                             size_t *appended, struct tfos_error *err)
{
    for (*appended = 0; *appended < count; ++*appended) {
        enum tfos_status status = append_record(decoder, records[*appended], err);
        if (status == TFOS_AGAIN && decoder->schema.rows.length > 0)
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
    return decoder->schema.rows.length;
}

uint64_t tfos__record_decoder_size(const struct tfos_example_decoder *decoder)
{
    return tfos__arrow_builder_size(&decoder->schema.rows);
}

// Structs have as many rows as the batch.
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
    set_length(&decoder->schema.rows, decoder->schema.rows.length);
    return tfos__arrow_builder_take(&decoder->schema.rows, out, err);
}

void tfos_example_decoder_close(struct tfos_example_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; decoder->columns && i < decoder->schema.field_count; i++) {
        tfos__record_feature_clear(&decoder->columns[i].plain);
        tfos__record_feature_clear(&decoder->columns[i].list);
    }
    tfos__free(decoder->columns);
    tfos__record_name_index_clear(&decoder->names);
    tfos__record_name_index_clear(&decoder->folded);
    tfos__buffer_clear(&decoder->folding);
    tfos__record_schema_clear(&decoder->schema);
    tfos__free(decoder);
}
