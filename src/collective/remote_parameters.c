// SPDX-License-Identifier: Apache-2.0
// Values travel as they lie in memory, as they do in the ring. A request is read to its end before
// the answer begins, so that neither side writes while the other does.
#include "collective/remote_parameters.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

/// One end of a connection.
struct stream {
    struct tfos__channel *channel;
    struct tfos__collective_failure *failure; ///< ends waits; NULL: the end of the connection does
    int64_t stall_timeout_ms;
};

static enum tfos_status await(struct stream *stream, bool is_write, bool is_patient,
                              struct tfos_error *err)
{
    int failure_fd = stream->failure ? stream->failure->wake_fd : -1;
    struct pollfd slots[] = {
        {.fd = tfos__channel_fd(stream->channel), .events = is_write ? POLLOUT : POLLIN},
        {.fd = failure_fd, .events = POLLIN}};
    int64_t deadline = is_patient ? TFOS__NEVER : tfos__deadline(stream->stall_timeout_ms);
    int count = poll(slots, 2, tfos__remaining_ms(deadline));
    eventfd_t wakes;
    if (count < 0 && errno != EINTR)
        return tfos__fail_errno(err, TFOS_IO, "cannot wait");
    if (count > 0 && slots[1].revents)
        (void)eventfd_read(failure_fd, &wakes);
    if (stream->failure)
        TFOS__TRY(tfos__collective_failure_check(stream->failure, TFOS__COLLECTIVE_ANY, err));
    if (count == 0)
        return tfos__fail(err, TFOS_TIMEOUT, "nothing has moved for %.10g s",
                          (double)stream->stall_timeout_ms / 1000.0);
    return TFOS_OK;
}

/// Moves all bytes one way. `is_patient`: the first ones may take any time.
static enum tfos_status transfer(struct stream *stream, void *data, size_t size, bool is_write,
                                 bool is_patient, struct tfos_error *err)
{
    size_t done = 0, part;
    while (done < size) {
        unsigned char *place = (unsigned char *)data + done;
        enum tfos_status status =
            is_write ? tfos__channel_write_some(stream->channel, place, size - done, &part, err)
                     : tfos__channel_read_some(stream->channel, place, size - done, &part, err);
        TFOS__TRY(status);
        done += status == TFOS_OK ? part : 0;
        if (status == TFOS_AGAIN)
            TFOS__TRY(await(stream, is_write, is_patient && done == 0, err));
    }
    return TFOS_OK;
}

/// Sends the changes; NULL: there are no more.
static enum tfos_status send_piece(struct stream *stream, struct tfos__collective_piece *piece,
                                   struct tfos_error *err)
{
    unsigned char bytes[TFOS__COLLECTIVE_FRAME_CAPACITY];
    if (piece && piece->block_count == 0)
        return TFOS_OK;
    size_t size = tfos__collective_piece_encode(piece, bytes);
    TFOS__TRY(transfer(stream, bytes, size, true, false, err));
    size = piece ? (size_t)tfos__collective_piece_changed_count(piece) * sizeof(float) : 0;
    return transfer(stream, piece ? piece->values : NULL, size, true, false, err);
}

/// Receives changes among `count` values, behind those of piece `last`.
static enum tfos_status receive_piece(struct stream *stream, struct tfos__collective_piece *piece,
                                      int64_t count, int64_t last, bool *is_end,
                                      struct tfos_error *err)
{
    unsigned char bytes[TFOS__COLLECTIVE_FRAME_CAPACITY];
    TFOS__TRY(transfer(stream, bytes, TFOS__COLLECTIVE_FRAME_SIZE, false, false, err));
    TFOS__TRY(tfos__collective_piece_decode(piece, bytes, count, last, is_end, err));
    if (*is_end)
        return TFOS_OK;
    size_t size = tfos__collective_piece_block_size(piece);
    TFOS__TRY(transfer(stream, bytes, size, false, false, err));
    TFOS__TRY(tfos__collective_piece_decode_blocks(piece, bytes, err));
    size = (size_t)tfos__collective_piece_changed_count(piece) * sizeof(float);
    return transfer(stream, piece->values, size, false, false, err);
}

// ---- the server

static enum tfos_status take_push(struct tfos__collective_parameters *parameters,
                                  struct stream *stream, struct tfos__collective_piece *piece,
                                  struct tfos_error *err)
{
    bool is_end = false;
    for (int64_t last = -1; !is_end; last = piece->number) {
        TFOS__TRY(receive_piece(stream, piece, parameters->count, last, &is_end, err));
        if (!is_end)
            TFOS__TRY(tfos__collective_parameters_push(parameters, piece, err));
    }
    return TFOS_OK;
}

static enum tfos_status answer_pull(struct tfos__collective_parameters *parameters,
                                    struct stream *stream, struct tfos__collective_piece *piece,
                                    uint32_t *marks, struct tfos_error *err)
{
    int64_t count = tfos__collective_piece_count(parameters->count);
    for (int64_t number = 0; number < count; number++) {
        tfos__collective_piece_init(piece, number, parameters->count);
        TFOS__TRY(tfos__collective_parameters_pull(parameters, piece, marks, NULL, err));
        TFOS__TRY(send_piece(stream, piece, err));
    }
    return send_piece(stream, NULL, err);
}

static enum tfos_status answer(const struct tfos__collective_server_thread *thread,
                               struct tfos__collective_piece *piece, uint32_t *marks, bool *is_last,
                               struct tfos_error *err)
{
    struct tfos__collective_parameters *parameters = thread->server->parameters;
    struct stream stream = {thread->channel, NULL, parameters->stall_timeout_ms};
    unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE];
    struct tfos__collective_request request;
    int rank = thread->rank, blocker;
    TFOS__TRY(transfer(&stream, bytes, sizeof(bytes), false, true, err));
    TFOS__TRY(tfos__collective_request_decode(bytes, parameters->staleness, &request, err));
    switch (request.kind) {
    case TFOS__COLLECTIVE_PUSH:
        TFOS__TRY(take_push(parameters, &stream, piece, err));
        tfos__collective_parameters_leave(parameters, rank, request.steps);
        return TFOS_OK;
    case TFOS__COLLECTIVE_AWAIT_ROWS:
    case TFOS__COLLECTIVE_GOT_ROWS:
        tfos__collective_parameters_await_rows(parameters, rank,
                                               request.kind == TFOS__COLLECTIVE_AWAIT_ROWS);
        return TFOS_OK;
    case TFOS__COLLECTIVE_PULL:
        TFOS__TRY(
            tfos__collective_parameters_enter(parameters, rank, request.steps, &blocker, err));
        break;
    case TFOS__COLLECTIVE_PULL_LAST:
        TFOS__TRY(tfos__collective_parameters_end(parameters, rank, &blocker, err));
        *is_last = true;
        break;
    }
    uint64_t stale_steps = htole64((uint64_t)atomic_load(&parameters->head->stale_steps[rank]));
    TFOS__TRY(transfer(&stream, &stale_steps, sizeof(stale_steps), true, false, err));
    return answer_pull(parameters, &stream, piece, marks, err);
}

static void *serve(void *argument)
{
    const struct tfos__collective_server_thread *thread = argument;
    const struct tfos__collective_parameters *parameters = thread->server->parameters;
    struct tfos_error cause;
    enum tfos_status status = TFOS_OK;
    bool is_last = false;
    struct tfos__collective_piece *piece = tfos__alloc(1, sizeof(*piece));
    uint32_t *marks =
        tfos__alloc((size_t)tfos__collective_piece_count(parameters->count), sizeof(*marks));
    if (!piece || !marks)
        status = tfos__no_memory(&cause, "collective", "parameters of another host");
    while (status == TFOS_OK && !is_last)
        status = answer(thread, piece, marks, &is_last, &cause);
    tfos__free(piece);
    tfos__free(marks);
    // Why a connection is lost is known to who watches the rank.
    int64_t patience_ms = status == TFOS_TIMEOUT ? 0 : TFOS__COLLECTIVE_REASON_MS;
    if (status < 0 && !atomic_load(&thread->server->is_stopping) &&
        tfos__collective_failure_await(parameters->failure, TFOS__COLLECTIVE_ANY,
                                       tfos__deadline(patience_ms), NULL) == TFOS_OK) {
        char message[TFOS__COLLECTIVE_TEXT_SIZE + sizeof(cause.message)];
        snprintf(message, sizeof(message), "the parameters cannot be exchanged with %s: %s",
                 parameters->roster->members[thread->rank].label, cause.message);
        tfos__collective_failure_set(parameters->failure, 0, status, message);
    }
    return NULL;
}

enum tfos_status
tfos__collective_parameter_server_start(struct tfos__collective_parameter_server *server,
                                        struct tfos__collective_parameters *parameters,
                                        const struct tfos__collective_links *links,
                                        struct tfos_error *err)
{
    server->parameters = parameters;
    atomic_store(&server->is_stopping, false);
    for (int rank = 1; rank < parameters->roster->size; rank++) {
        struct tfos__collective_server_thread *thread = &server->threads[rank];
        *thread = (struct tfos__collective_server_thread){
            .server = server, .channel = links->parameters[rank].channel, .rank = rank};
        if (!thread->channel)
            continue;
        int fault = tfos__thread_start(&thread->thread, NULL, serve, thread);
        if (fault != 0)
            return tfos__fail(err, TFOS_IO, "cannot start a thread: %s", strerror(fault));
        thread->is_running = true;
    }
    return TFOS_OK;
}

void tfos__collective_parameter_server_stop(struct tfos__collective_parameter_server *server,
                                            bool is_aborted)
{
    atomic_store(&server->is_stopping, is_aborted);
    for (int rank = 0; rank < TFOS_COLLECTIVE_MAX_RANKS; rank++) {
        struct tfos__collective_server_thread *thread = &server->threads[rank];
        if (!thread->is_running)
            continue;
        if (is_aborted)
            (void)shutdown(tfos__channel_fd(thread->channel), SHUT_RDWR);
        pthread_join(thread->thread, NULL);
        thread->is_running = false;
    }
}

// ---- the client

static enum tfos_status send_push(struct tfos__collective_parameters *parameters,
                                  struct stream *stream,
                                  const struct tfos__collective_replica *replica,
                                  struct tfos_error *err)
{
    struct tfos__collective_piece *piece = parameters->piece;
    int64_t count = tfos__collective_piece_count(parameters->count);
    for (int64_t number = 0; number < count; number++) {
        tfos__collective_piece_init(piece, number, parameters->count);
        tfos__collective_piece_subtract(piece, replica->vector, replica->pulled, replica->share);
        TFOS__TRY(send_piece(stream, piece, err));
    }
    return send_piece(stream, NULL, err);
}

static enum tfos_status take_answer(struct tfos__collective_parameters *parameters,
                                    struct stream *stream,
                                    const struct tfos__collective_replica *replica,
                                    _Atomic int64_t *met_us, struct tfos_error *err)
{
    struct tfos__collective_piece *piece = parameters->piece;
    uint64_t stale_steps;
    bool is_end = false;
    // Rank 0 waits for others before the first byte of an answer.
    TFOS__TRY(transfer(stream, &stale_steps, sizeof(stale_steps), false, true, err));
    atomic_store(met_us, tfos__now_us());
    parameters->stale_steps = (int64_t)le64toh(stale_steps);
    for (int64_t last = -1; !is_end; last = piece->number) {
        TFOS__TRY(receive_piece(stream, piece, parameters->count, last, &is_end, err));
        if (!is_end)
            tfos__collective_piece_write(piece, replica->pulled);
    }
    return TFOS_OK;
}

static enum tfos_status ask(struct tfos__collective_parameters *parameters, struct stream *stream,
                            const struct tfos__collective_request *request,
                            const struct tfos__collective_replica *replica, _Atomic int64_t *met_us,
                            struct tfos_error *err)
{
    unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE];
    tfos__collective_request_encode(request, bytes);
    TFOS__TRY(transfer(stream, bytes, sizeof(bytes), true, false, err));
    if (request->kind == TFOS__COLLECTIVE_PUSH)
        return send_push(parameters, stream, replica, err);
    if (request->kind > TFOS__COLLECTIVE_PULL_LAST)
        return TFOS_OK;
    return take_answer(parameters, stream, replica, met_us, err);
}

enum tfos_status tfos__collective_parameters_ask(struct tfos__collective_parameters *parameters,
                                                 struct tfos__channel *channel,
                                                 const struct tfos__collective_request *request,
                                                 const struct tfos__collective_replica *replica,
                                                 _Atomic int64_t *met_us, struct tfos_error *err)
{
    struct stream stream = {channel, parameters->failure, parameters->stall_timeout_ms};
    struct tfos_error cause;
    enum tfos_status status = ask(parameters, &stream, request, replica, met_us, &cause);
    if (status == TFOS_OK)
        return TFOS_OK;
    TFOS__TRY(tfos__collective_failure_await(parameters->failure, TFOS__COLLECTIVE_ANY,
                                             tfos__deadline(TFOS__COLLECTIVE_REASON_MS), err));
    return tfos__fail(err, status, "the parameters cannot be exchanged with %s: %s",
                      parameters->roster->members[0].label, cause.message);
}
