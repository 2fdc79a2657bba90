// SPDX-License-Identifier: Apache-2.0
#include "record_pass.h"

#include "record_files.h"
#include "terminal.h"
#include "value_text.h"

#define VIEW_COUNT 256

static void take_damage(void *context, const struct tfos_record_damage *damage)
{
    struct pass *pass = context;
    if (pass->damages) {
        json_array_append_new(pass->damages,
                              json_pack("{s:o, s:I, s:I, s:s}", "file", text_to_json(pass->path),
                                        "offset", (json_int_t)damage->offset, "size",
                                        (json_int_t)damage->size, "damage",
                                        tfos_record_damage_text(damage->kind)));
        return;
    }
    progress_end();
    fprintf(stderr, "tfos: %s", damage->message);
    if (damage->size > 0)
        fprintf(stderr, " (%llu bytes passed over)", (unsigned long long)damage->size);
    fputc('\n', stderr);
}

int run_pass_on(struct pass *pass, struct tfos_stream *stream)
{
    struct tfos_error err;
    struct tfos_record_reader *reader = NULL;
    struct tfos_view records[VIEW_COUNT];
    struct tfos_record_reader_options options = reader_options(pass->options, pass->path);
    size_t count;
    options.on_damage = take_damage;
    options.context = pass;
    enum tfos_status status = tfos_record_reader_open(stream, &options, &reader, &err);
    int result = 0;
    while (status == TFOS_OK && result == 0) {
        status = tfos_record_reader_next_batch(reader, records, VIEW_COUNT, &count, &err);
        if (status == TFOS_OK && pass->take)
            result = pass->take(pass, records, count);
        pass->counts = tfos_record_reader_get_counts(reader);
        progress_show(pass->what ? pass->what : "read", pass->counts.records, pass->counts.bytes,
                      options.name);
    }
    progress_end();
    if (status < 0)
        result = say_error(&err);
    tfos_record_reader_close(reader);
    return result;
}

int run_pass(struct pass *pass)
{
    struct tfos_stream *stream = open_input(pass->path);
    if (!stream)
        return 1;
    int result = run_pass_on(pass, stream);
    tfos_stream_close(stream);
    return result;
}
