// SPDX-License-Identifier: Apache-2.0
// A record from outside: first by schema inference, then as the columns of the inferred schema,
// then as some that it may not have. What was decoded is encoded and decoded again, to the same
// rows.
#include <stdlib.h>
#include <string.h>
#include <tfos/example.h>
#include <tfos/memory.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

// Encodes a batch and decodes that.
static void go_round(const struct ArrowSchema *schema, enum tfos_record_type type,
                     const struct ArrowArray *batch)
{
    struct tfos_example_encoder_options options = {.type = type};
    struct tfos_example_decoder_options decoding = {.type = type};
    struct tfos_example_encoder *encoder = NULL;
    struct tfos_example_decoder *decoder = NULL;
    struct tfos_view frames;
    const struct tfos_view *records;
    size_t appended;
    check(tfos_example_encoder_open(schema, &options, &encoder, NULL) == TFOS_OK);
    check(tfos_example_encoder_encode(encoder, batch, &frames, &records, NULL) == TFOS_OK);
    check(tfos_example_decoder_open(schema, &decoding, &decoder, NULL) == TFOS_OK);
    check(tfos_example_decoder_append(decoder, records, (size_t)batch->length, &appended, NULL) ==
          TFOS_OK);
    check(tfos_example_decoder_row_count(decoder) == batch->length);
    tfos_example_decoder_close(decoder);
    tfos_example_encoder_close(encoder);
}

static int decode(const struct ArrowSchema *schema, enum tfos_record_type type,
                  struct tfos_view record)
{
    struct tfos_example_decoder_options decoding = {.type = type};
    struct tfos_example_decoder *decoder = NULL;
    size_t appended;
    if (tfos_example_decoder_open(schema, &decoding, &decoder, NULL) < 0)
        return 0;
    int is_row = tfos_example_decoder_append(decoder, &record, 1, &appended, NULL) == TFOS_OK;
    struct ArrowArray batch;
    check(tfos_example_decoder_take(decoder, &batch, NULL) == TFOS_OK);
    check(batch.length == is_row);
    go_round(schema, type, &batch);
    batch.release(&batch);
    tfos_example_decoder_close(decoder);
    return is_row;
}

static void infer_and_decode(enum tfos_record_type type, struct tfos_view record)
{
    struct tfos_schema_inference *inference = NULL, *loaded = NULL;
    struct ArrowSchema schema;
    size_t seen;
    char *json = NULL;
    check(tfos_schema_inference_open(type, &inference, NULL) == TFOS_OK);
    if (tfos_schema_inference_append(inference, &record, 1, &seen, NULL) == TFOS_OK) {
        check(tfos_schema_inference_save(inference, &json, NULL) == TFOS_OK);
        check(tfos_schema_inference_load(json, &loaded, NULL) == TFOS_OK);
        check(tfos_schema_inference_schema(loaded, &schema, NULL) == TFOS_OK);
        decode(&schema, type, record);
        schema.release(&schema);
        tfos_schema_inference_close(loaded);
        tfos_free(json);
    }
    tfos_schema_inference_close(inference);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    enum tfos_record_type type = data[0] & 1 ? TFOS_RECORD_SEQUENCE_EXAMPLE : TFOS_RECORD_EXAMPLE;
    struct tfos_view record = {data + 1, size - 1};
    struct ArrowSchema item = {.format = "c", .name = "item", .flags = ARROW_FLAG_NULLABLE};
    struct ArrowSchema *items[] = {&item};
    struct ArrowSchema columns[] = {
        {.format = "i", .name = "x", .flags = ARROW_FLAG_NULLABLE},
        {.format = "+w:2",
         .name = "y",
         .n_children = 1,
         .children = items,
         .flags = ARROW_FLAG_NULLABLE},
        {.format = "d:10,3", .name = "z", .flags = ARROW_FLAG_NULLABLE},
    };
    struct ArrowSchema *children[] = {&columns[0], &columns[1], &columns[2]};
    struct ArrowSchema schema = {.format = "+s", .name = "", .n_children = 3, .children = children};
    infer_and_decode(type, record);
    decode(&schema, type, record);
    return 0;
}
