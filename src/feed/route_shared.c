// SPDX-License-Identifier: Apache-2.0
// The route through shared memory. The unix socket carries only what cannot be seen there:
// descriptors, words, and the death of the node. A row that is larger than the ring makes the
// writer ask for a larger lane; the reader reads the old one to its end first. With results, old
// lanes stay until their results have come.
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/route.h"

#define FAILURE_WAIT_MS 1000 ///< how long the words of a failure may come after its state

static struct tfos__writer_lane *last_lane(const struct tfos__feed_writer *writer)
{
    return &writer->shared.lanes[writer->shared.lane_count - 1];
}

static void leave_first_lane(struct tfos__feed_writer *writer)
{
    struct tfos__route_shared_state *shared = &writer->shared;

    shared->left_count += shared->lanes[0].row_count;
    tfos__lane_release(shared->lanes[0].lane);
    shared->lane_count--;
    memmove(shared->lanes, shared->lanes + 1, shared->lane_count * sizeof shared->lanes[0]);
}

static enum tfos_status map_lane(struct tfos__feed_writer *writer, int lane_fd, int bell_fd,
                                 struct tfos_error *err)
{
    struct tfos__route_shared_state *shared = &writer->shared;
    struct tfos__writer_lane *lanes =
        tfos__realloc(shared->lanes, shared->lane_count + 1, sizeof *lanes);
    struct tfos__lane *lane = NULL;

    if (!lanes)
        return tfos__no_memory(err, "feed", "a list of lanes");
    shared->lanes = lanes;
    if (!shared->board)
        TFOS__TRY(tfos__board_map(bell_fd, &shared->board, err));
    TFOS__TRY(tfos__lane_map(lane_fd, TFOS__LANE_WRITER, shared->board, &lane, err));
    if (writer->has_results && lane->result_size == 0) {
        tfos__lane_release(lane);
        return tfos__fail(err, TFOS_CORRUPT, "feed: the node gave a lane without room for results");
    }
    lanes[shared->lane_count++] = (struct tfos__writer_lane){
        .lane = lane, .released_before = atomic_load(&lane->page->rows_released)};
    // Without results nothing more is to be had from the lane before.
    if (!writer->has_results && shared->lane_count > 1)
        leave_first_lane(writer);
    writer->sender.is_sent = false;
    shared->is_growing = false;
    return TFOS_OK;
}

static enum tfos_status attach(struct tfos__feed_writer *writer, const json_t *message,
                               const int *fds, int fd_count, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    (void)message;
    if (fd_count != 2)
        status = tfos__fail(err, TFOS_CORRUPT,
                            "feed: the node's answer came with %d descriptors, not 2", fd_count);
    else
        status = map_lane(writer, fds[0], fds[1], err);
    for (int i = 0; i < fd_count; i++)
        close(fds[i]);
    return status;
}

static uint64_t ring_size(const struct tfos__feed_writer *writer)
{
    return last_lane(writer)->lane->size;
}

static enum tfos_status reserve(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err)
{
    struct tfos__lane *lane = last_lane(writer)->lane;

    if (size <= lane->size)
        return tfos__inlet_reserve(&lane->inlet, size, space, err);
    if (!writer->shared.is_growing) {
        // Room for two such rows, so that one can be written while the other is read.
        TFOS__TRY(tfos__writer_ask_lane(writer, (int64_t)size * 2, err));
        writer->shared.is_growing = true;
    }
    return TFOS_AGAIN;
}

static enum tfos_status commit(struct tfos__feed_writer *writer, uint64_t size, uint64_t rows,
                               struct tfos_error *err)
{
    struct tfos__writer_lane *lane = last_lane(writer);
    int64_t before = (int64_t)(lane->lane->inlet.rows & ~TFOS__ROWS_COMPLETE);

    TFOS__TRY(tfos__inlet_commit(&lane->lane->inlet, size, rows, err));
    lane->row_count += (int64_t)(rows & ~TFOS__ROWS_COMPLETE) - before;
    return TFOS_OK;
}

// The state says that all has failed; the words come over the socket.
static enum tfos_status wait_for_failure(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(FAILURE_WAIT_MS);

    while (writer->verdict == TFOS_OK && tfos__now_ms() < deadline) {
        TFOS__TRY(tfos__writer_read_frames(writer, err));
        if (writer->verdict == TFOS_OK &&
            tfos__socket_wait(tfos__channel_fd(writer->channel), POLLIN, deadline, NULL) != TFOS_OK)
            break;
    }
    if (writer->verdict != TFOS_OK)
        return tfos__writer_verdict(writer, err);
    return tfos__fail(err, TFOS_CLOSED, "feed: %s: the cluster has failed", writer->place);
}

static enum tfos_status check(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    int64_t now = tfos__now_ms();

    if (writer->verdict == TFOS_OK && writer->shared.board) {
        uint32_t state = atomic_load(&writer->shared.board->page->state);
        if (state == TFOS__FEED_TERMINATED)
            return TFOS_END;
        if (state == TFOS__FEED_FAILED)
            return wait_for_failure(writer, err);
    }
    if (now - writer->shared.checked_ms >= TFOS__WRITER_SLICE_MS / 2 || writer->shared.is_growing) {
        writer->shared.checked_ms = now;
        TFOS__TRY(tfos__writer_read_frames(writer, err));
    }
    return tfos__writer_verdict(writer, err);
}

static enum tfos_status peek(struct tfos__feed_writer *writer, const struct tfos__record **record,
                             const uint8_t **body, struct tfos_error *err)
{
    struct tfos__route_shared_state *shared = &writer->shared;

    if (!writer->has_results)
        return TFOS_AGAIN;
    while (shared->lane_count > 1 && shared->lanes[0].result_count >= shared->lanes[0].row_count) {
        leave_first_lane(writer);
        tfos__schema_clear(&writer->result_schema);
    }
    struct tfos__outlet *outlet = &shared->lanes[0].lane->outlet;
    enum tfos_status status = tfos__outlet_peek(outlet, err);
    if (status == TFOS_OK) {
        *record = &outlet->record;
        *body = tfos__outlet_body(outlet);
    }
    return status;
}

static void skip(struct tfos__feed_writer *writer)
{
    tfos__outlet_skip(&writer->shared.lanes[0].lane->outlet);
}

static void free_body(void *body, uint64_t sequence)
{
    (void)sequence;
    tfos__free(body);
}

// Results leave the ring at once: whoever holds them must not keep the reader from writing more,
// and the lane may go to another writer while they are still in use.
static enum tfos_status take(struct tfos__feed_writer *writer, const uint8_t **body,
                             struct tfos__batch_owner *owner, struct tfos_error *err)
{
    struct tfos__writer_lane *lane = &writer->shared.lanes[0];
    struct tfos__outlet *outlet = &lane->lane->outlet;
    uint8_t *copy = tfos__realloc(NULL, outlet->record.body_size + 1, 1);

    if (!copy)
        return tfos__no_memory(err, "feed", "a batch of results");
    memcpy(copy, tfos__outlet_body(outlet), outlet->record.body_size);
    lane->result_count += outlet->record.rows;
    tfos__outlet_skip(outlet);
    *owner = (struct tfos__batch_owner){NULL, free_body, copy, 0};
    *body = copy;
    return TFOS_OK;
}

static bool has_news(struct tfos__feed_writer *writer, uint64_t size)
{
    struct tfos__lane *last = last_lane(writer)->lane;

    if (size > 0 && size <= last->size && tfos__inlet_has_space(&last->inlet, size))
        return true;
    return writer->has_results && !tfos__outlet_is_empty(&writer->shared.lanes[0].lane->outlet);
}

static void wait_for_news(struct tfos__feed_writer *writer, uint64_t size)
{
    if (writer->shared.lane_count == 0 || writer->shared.is_growing) {
        (void)tfos__socket_wait(tfos__channel_fd(writer->channel), POLLIN,
                                tfos__deadline(TFOS__WRITER_SLICE_MS), NULL);
        return;
    }
    for (int i = 0; i < TFOS__SPIN_COUNT; i++) {
        if (has_news(writer, size))
            return;
        tfos__bell_pause();
    }
    // Space is announced on the last lane's bell, results on the first's.
    struct tfos__lane *lane = size > 0 ? last_lane(writer)->lane : writer->shared.lanes[0].lane;
    uint32_t value = tfos__bell_arm(lane->bell);
    if (!has_news(writer, size))
        tfos__bell_sleep(lane->bell, value, TFOS__WRITER_SLICE_MS);
    tfos__bell_disarm(lane->bell);
}

static int64_t taken(const struct tfos__feed_writer *writer)
{
    int64_t rows = writer->shared.left_count;

    for (size_t i = 0; i < writer->shared.lane_count; i++) {
        const struct tfos__writer_lane *lane = &writer->shared.lanes[i];
        rows += (int64_t)(atomic_load(&lane->lane->page->rows_released) - lane->released_before);
    }
    return rows;
}

static int64_t batch_rows(const struct tfos__feed_writer *writer)
{
    return writer->shared.board ? atomic_load(&writer->shared.board->page->batch_rows) : 0;
}

static uint64_t progress(const struct tfos__feed_writer *writer)
{
    uint64_t sum = writer->shared.answer_count;

    if (writer->shared.board)
        sum += atomic_load(&writer->shared.board->page->others);
    for (size_t i = 0; i < writer->shared.lane_count; i++) {
        struct tfos__lane_page *page = writer->shared.lanes[i].lane->page;
        sum += atomic_load(&page->tail) + atomic_load(&page->rows_released) +
               atomic_load(&page->result_head);
    }
    return sum;
}

static bool is_delivered(const struct tfos__feed_writer *writer)
{
    (void)writer; // what is committed lies in memory that the reader has too
    return true;
}

static enum tfos_status say(struct tfos__feed_writer *writer, json_t *message,
                            struct tfos_error *err)
{
    return tfos__writer_send_frame(writer, message, err);
}

static void close_route(struct tfos__feed_writer *writer)
{
    struct tfos__route_shared_state *shared = &writer->shared;

    while (shared->lane_count > 0)
        leave_first_lane(writer);
    tfos__free(shared->lanes);
    tfos__board_release(shared->board);
    // The mappings are gone before the node hears of it and hands the lane to another writer. The
    // end of the connection would say the same.
    if (writer->channel && writer->is_attached)
        (void)say(writer,
                  json_pack("{ss sb sI}", "type", "close", "complete", writer->is_finished, "rows",
                            (json_int_t)(writer->first_row + writer->row_count)),
                  NULL);
}

const struct tfos__route tfos__route_shared = {
    .attach = attach,
    .ring_size = ring_size,
    .reserve = reserve,
    .commit = commit,
    .check = check,
    .peek = peek,
    .skip = skip,
    .take = take,
    .wait = wait_for_news,
    .progress = progress,
    .taken = taken,
    .batch_rows = batch_rows,
    .is_delivered = is_delivered,
    .say = say,
    .close = close_route,
};
