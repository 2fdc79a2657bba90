// SPDX-License-Identifier: Apache-2.0
// Columns to frames. A batch is encoded whole before any of it is written.
#include <tfos/example_file.h>

#include "base/fail.h"
#include "base/memory.h"

struct tfos_example_writer {
    struct tfos_example_encoder *encoder; ///< owned
    struct tfos_record_writer *frames;    ///< owned
};

enum tfos_status tfos_example_writer_open(struct tfos_stream *stream,
                                          const struct ArrowSchema *schema,
                                          const struct tfos_example_writer_options *options,
                                          struct tfos_example_writer **out, struct tfos_error *err)
{
    static const struct tfos_example_writer_options defaults;
    struct tfos_example_writer *writer = tfos__alloc(1, sizeof *writer);
    if (!writer)
        return tfos__no_memory(err, "record", "a writer");
    if (!options)
        options = &defaults;
    enum tfos_status status =
        tfos_example_encoder_open(schema, &options->example, &writer->encoder, err);
    if (status == TFOS_OK)
        status = tfos_record_writer_open(stream, &options->record, &writer->frames, err);
    if (status < 0)
        tfos_example_writer_close(writer);
    else
        *out = writer;
    return status;
}

enum tfos_status tfos_example_writer_append(struct tfos_example_writer *writer,
                                            const struct ArrowArray *batch, struct tfos_error *err)
{
    struct tfos_view frames;
    TFOS__TRY(tfos_example_encoder_encode(writer->encoder, batch, &frames, NULL, err));
    return tfos_record_writer_append_frames(writer->frames, frames, err);
}

enum tfos_status tfos_example_writer_finish(struct tfos_example_writer *writer,
                                            struct tfos_error *err)
{
    return tfos_record_writer_finish(writer->frames, err);
}

const struct tfos_example_loss *tfos_example_writer_losses(const struct tfos_example_writer *writer,
                                                           size_t *count)
{
    return tfos_example_encoder_losses(writer->encoder, count);
}

void tfos_example_writer_close(struct tfos_example_writer *writer)
{
    if (!writer)
        return;
    tfos_record_writer_close(writer->frames);
    tfos_example_encoder_close(writer->encoder);
    tfos__free(writer);
}
