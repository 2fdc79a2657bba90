// SPDX-License-Identifier: Apache-2.0
// A writer's beginning, its end, and what the node says in between.
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cluster_key.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/writer.h"

#define CONNECT_TIMEOUT_MS 20000

enum tfos_status tfos__feed_writer_final_status(const struct tfos__feed_writer *writer,
                                                struct tfos_error *err)
{
    if (writer->final_status < 0 && err)
        *err = writer->failure;
    return writer->final_status;
}

enum tfos_status tfos__feed_writer_end(struct tfos__feed_writer *writer, enum tfos_status status,
                                       const char *words, struct tfos_error *err)
{
    if (writer->final_status == TFOS_OK) {
        writer->final_status = status;
        tfos__fail(&writer->failure, status, "feed: partition %lld at %s: %s",
                   (long long)writer->partition, writer->place, words);
    }
    return tfos__feed_writer_final_status(writer, err);
}

enum tfos_status tfos__feed_writer_check_interrupt(struct tfos__feed_writer *writer,
                                                   struct tfos_error *err)
{
    return tfos__fail_in(err, tfos__wait_check(&writer->wait, err), "feed: partition %lld at %s",
                         (long long)writer->partition, writer->place);
}

// The status that a refusal names.
static enum tfos_status read_status(const char *name)
{
#define X(label, value, text)                                                                      \
    if (value < 0 && strcmp(name, #label) == 0)                                                    \
        return TFOS_##label;
    TFOS_STATUS_MAP(X)
#undef X
    return TFOS_CORRUPT;
}

enum tfos_status tfos__feed_writer_handle_message(struct tfos__feed_writer *writer,
                                                  const json_t *message, const int *fds,
                                                  int fd_count, struct tfos_error *err)
{
    const char *type = tfos__json_string_or(message, "type", "");
    const char *words = tfos__json_string_or(message, "message", "no reason was given");

    if (strcmp(type, "channel") == 0)
        return writer->transport->attach(writer, message, fds, fd_count, err);
    for (int i = 0; i < fd_count; i++)
        close(fds[i]);
    if (strcmp(type, "explained") == 0) {
        tfos__free(writer->explanation);
        writer->explanation = tfos__strdup(tfos__json_string_or(message, "text", ""));
        return writer->explanation ? TFOS_OK : tfos__no_memory(err, "feed", "an explanation");
    }
    if (strcmp(type, "refused") == 0)
        (void)tfos__feed_writer_end(
            writer, read_status(tfos__json_string_or(message, "status", "")), words, NULL);
    else if (strcmp(type, "failed") == 0)
        (void)tfos__feed_writer_end(writer, TFOS_CLOSED, words, NULL);
    else if (strcmp(type, "fenced") == 0)
        (void)tfos__feed_writer_end(writer, TFOS_BUSY, "this attempt was superseded by a later one",
                                    NULL);
    else if (strcmp(type, "end") == 0)
        (void)tfos__feed_writer_end(writer, TFOS_END, "the trainer wants no more rows", NULL);
    else if (strcmp(type, "wait") == 0)
        writer->answer_count++;
    else
        return tfos__fail(err, TFOS_CORRUPT, "feed: %s: the node sent an unknown message \"%.40s\"",
                          writer->place, type);
    return TFOS_OK;
}

enum tfos_status tfos__feed_writer_read_frames(struct tfos__feed_writer *writer,
                                               struct tfos_error *err)
{
    struct tfos_error cause;
    // What the node said before it went away is read first.
    enum tfos_status pumped = tfos__channel_pump(writer->connection, &cause);

    for (;;) {
        json_t *message = NULL;
        int fds[TFOS__FRAME_DESCRIPTORS];
        int fd_count = 0;
        enum tfos_status status =
            tfos__channel_next(writer->connection, &message, fds, &fd_count, &cause);
        if (status == TFOS_AGAIN && pumped == TFOS_OK)
            return TFOS_OK;
        if (status != TFOS_OK) {
            enum tfos_status reason = status == TFOS_AGAIN ? pumped : status;
            return tfos__feed_writer_end(writer, reason, cause.message, err);
        }
        status = tfos__feed_writer_handle_message(writer, message, fds, fd_count, err);
        json_decref(message);
        TFOS__TRY(status);
        // Over TCP the records begin right behind this frame.
        if (writer->ring_size > 0 && writer->transport == &tfos__feed_remote_transport)
            return TFOS_OK;
    }
}

enum tfos_status tfos__feed_writer_send_frame(struct tfos__feed_writer *writer, json_t *message,
                                              struct tfos_error *err)
{
    TFOS__TRY(tfos__channel_queue(writer->connection, message, NULL, 0, err));
    // A node that has gone may have said why: who reads the frames will find both.
    enum tfos_status status = tfos__channel_pump(writer->connection, err);
    return status == TFOS_CLOSED ? TFOS_OK : status;
}

enum tfos_status tfos__feed_writer_request_channel(struct tfos__feed_writer *writer, int64_t size,
                                                   struct tfos_error *err)
{
    json_t *message = json_pack(
        "{ss ss ss sI sI sI sI sI sI sb sb}", "type", "open", "token", writer->token, "queue",
        writer->queue, "feed", (json_int_t)writer->feed, "partition", (json_int_t)writer->partition,
        "attempt", (json_int_t)writer->attempt, "first_row", (json_int_t)writer->row, "size",
        (json_int_t)size, "timeout_ms", (json_int_t)writer->timeout_ms, "results",
        writer->has_results, "extra", writer->is_extra);

    return tfos__feed_writer_send_frame(writer, message, err);
}

static enum tfos_status check_options(const struct tfos_feeder_options *options,
                                      const struct tfos__feed_target *target,
                                      struct tfos_error *err)
{
    if (!target->socket_name && !target->address)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: neither socket_name nor address of a node is given");
    if (!options->cluster_id)
        return tfos__fail(err, TFOS_INVALID, "feed: cluster_id is missing");
    if (options->feed < 1 || options->partition < 0 || options->attempt < 0 ||
        target->first_row < 0)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: feed %lld, partition %lld, attempt %lld, first_row %lld: feeds "
                          "count from 1, the "
                          "others from 0",
                          (long long)options->feed, (long long)options->partition,
                          (long long)options->attempt, (long long)target->first_row);
    if (options->channel_size < 0 || options->channel_size > TFOS__FEED_CHANNEL_SIZE_LIMIT)
        return tfos__fail(err, TFOS_INVALID, "feed: channel_size %lld is out of range",
                          (long long)options->channel_size);
    return TFOS_OK;
}

static enum tfos_status copy_options(const struct tfos_feeder_options *options,
                                     const struct tfos__feed_target *target,
                                     struct tfos__feed_writer *writer, struct tfos_error *err)
{
    writer->transport =
        target->socket_name ? &tfos__feed_local_transport : &tfos__feed_remote_transport;
    writer->place = tfos__strdup(target->socket_name ? target->socket_name : target->address);
    writer->queue = tfos__strdup(options->queue ? options->queue : "input");
    writer->feed = options->feed;
    writer->partition = options->partition;
    writer->attempt = options->attempt;
    writer->first_row = writer->row = writer->committed_row = target->first_row;
    writer->is_extra = target->is_extra;
    writer->channel_size = options->channel_size ? options->channel_size : TFOS__FEED_CHANNEL_SIZE;
    writer->timeout_ms =
        options->wait.timeout_ms > 0 ? options->wait.timeout_ms : TFOS__FEED_TIMEOUT_MS;
    writer->has_results = options->has_results;
    writer->encoder.refuses_pickles = options->refuses_pickles;
    writer->ahead_rows = options->ahead_rows;
    writer->caller = options->wait;
    writer->caller.timeout_ms = 0; // each wait has one of its own, which progress renews
    writer->wait = tfos__wait_begin(&writer->caller, -1);
    if (!writer->place || !writer->queue)
        return tfos__no_memory(err, "feed", "a writer");
    return TFOS_OK;
}

static enum tfos_status open_channel(struct tfos__feed_writer *writer, bool is_local,
                                     const struct tfos__identity *identity, struct tfos_error *err)
{
    int64_t limit_ms =
        writer->timeout_ms < CONNECT_TIMEOUT_MS ? writer->timeout_ms : CONNECT_TIMEOUT_MS;
    struct tfos__wait wait = tfos__wait_begin(&writer->caller, limit_ms);
    int fd = -1;

    TFOS__TRY(is_local ? tfos__socket_connect_unix(writer->place, &wait, &fd, err)
                       : tfos__socket_connect(writer->place, &wait, &fd, err));
    if (!is_local)
        tfos__socket_watch_peer(fd, TFOS__TCP_BULK);
    TFOS__TRY(tfos__channel_open(fd, is_local ? TFOS__CHANNEL_UNIX : TFOS__CHANNEL_TLS_CLIENT,
                                 identity, writer->place, &writer->connection, err));
    return tfos__channel_expect_bulk(writer->connection, err);
}

static enum tfos_status connect_node(const struct tfos_feeder_options *options,
                                     const struct tfos__feed_target *target,
                                     struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__identity identity = {.cluster_id = options->cluster_id};
    enum tfos_status status = tfos__cluster_key_read(options->key, "feed", identity.key, err);

    if (status == TFOS_OK)
        status = tfos__cluster_key_prove(identity.key, "feed", "feed", writer->token, err);
    if (status == TFOS_OK)
        status = open_channel(writer, target->socket_name != NULL, &identity, err);
    explicit_bzero(identity.key, sizeof(identity.key));
    return status;
}

// Waits until a channel is free: as long as the node reports, now and then, that its reader makes
// progress.
static enum tfos_status wait_for_channel(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(writer->timeout_ms);
    uint64_t answers = writer->answer_count;

    while (writer->ring_size == 0) {
        TFOS__TRY(tfos__feed_writer_read_frames(writer, err));
        if (writer->final_status != TFOS_OK)
            return tfos__feed_writer_final_status(writer, err);
        if (writer->answer_count != answers) {
            answers = writer->answer_count;
            deadline = tfos__deadline(writer->timeout_ms);
        }
        if (writer->ring_size > 0)
            break;
        TFOS__TRY(tfos__feed_writer_check_interrupt(writer, err));
        if (tfos__now_ms() >= deadline)
            return tfos__fail(
                err, TFOS_TIMEOUT,
                "feed: partition %lld: no channel of %s came free for %lld s, because "
                "the trainer takes "
                "nothing from the channels of other partitions",
                (long long)writer->partition, writer->place,
                (long long)(writer->timeout_ms / 1000));
        (void)tfos__socket_wait(tfos__channel_fd(writer->connection),
                                (short)tfos__channel_events(writer->connection),
                                tfos__deadline(TFOS__FEED_WRITER_SLICE_MS), NULL);
    }
    return TFOS_OK;
}

enum tfos_status tfos__feed_writer_open(const struct tfos_feeder_options *options,
                                        const struct tfos__feed_target *target,
                                        struct tfos__feed_writer **out, struct tfos_error *err)
{
    TFOS__TRY(check_options(options, target, err));
    struct tfos__feed_writer *writer = tfos__alloc(1, sizeof(*writer));
    if (!writer)
        return tfos__no_memory(err, "feed", "a writer");
    enum tfos_status status = copy_options(options, target, writer, err);
    if (status == TFOS_OK)
        status = connect_node(options, target, writer, err);
    if (status == TFOS_OK)
        status = tfos__feed_writer_request_channel(writer, writer->channel_size, err);
    if (status == TFOS_OK)
        status = wait_for_channel(writer, err);
    if (status != TFOS_OK) {
        tfos__feed_writer_close(writer);
        return status;
    }
    *out = writer;
    return TFOS_OK;
}

void tfos__feed_writer_close(struct tfos__feed_writer *writer)
{
    if (!writer)
        return;
    // Not sent by a writer that has got no channel.
    json_t *message = writer->ring_size == 0 ? NULL
                                             : json_pack("{ss sb sI}", "type", "close", "complete",
                                                         writer->is_finished, "rows",
                                                         (json_int_t)writer->committed_row);
    writer->transport->close(writer, message);
    tfos__channel_close(writer->connection);
    tfos__feed_batch_encoder_clear(&writer->encoder);
    tfos__feed_schema_clear(&writer->result_schema);
    tfos__buffer_clear(&writer->pieces);
    tfos__free(writer->explanation);
    tfos__free(writer->place);
    tfos__free(writer->queue);
    explicit_bzero(writer->token, sizeof(writer->token));
    tfos__free(writer);
}
