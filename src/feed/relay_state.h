// SPDX-License-Identifier: Apache-2.0
/// The inside of a relay. Its thread owns everything but what the mutex guards. For relay.c,
/// relay_intake.c and relay_output.c only.
#ifndef TFOS_FEED_RELAY_STATE_H
#define TFOS_FEED_RELAY_STATE_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/channel.h"
#include "base/memory.h"
#include "feed/lane.h"
#include "feed/record.h"
#include "feed/relay.h"

enum tfos__intake {
    TFOS__INTAKE_HEAD,  // reading a record's head
    TFOS__INTAKE_SPACE, // waiting for space in the ring
    TFOS__INTAKE_LANE,  // waiting for a larger lane
    TFOS__INTAKE_BODY   // reading the body
};

struct tfos__relay_lane {
    struct tfos__lane *lane;
    uint64_t released_before;
    int64_t row_count, result_count;
};

struct tfos__relay {
    struct tfos__channel *channel; // owned
    struct tfos__board *board;
    int wake_fd;
    int64_t feed, partition, attempt;
    int64_t timeout_ms;
    bool has_results;
    pthread_t thread;
    bool has_thread;

    struct tfos__relay_lane *lanes; // owned; the last is written to, results come from the first
    size_t lane_count;
    int64_t left_count; // rows in lanes that were left
    enum tfos__intake intake;
    struct tfos__record record;
    size_t received;            // bytes of the record
    uint8_t *space;             // where its body goes
    uint8_t *message;           // owned: the body of a message
    struct tfos__buffer schema; // record of the last schema: a larger lane needs it again
    bool is_schema_due;
    struct tfos__buffer out; // messages on their way
    size_t result_sent;      // bytes of the result record on its way
    bool is_sending_result, is_sending_message;
    bool is_complete, has_told_complete;
    bool has_stopped_reading;
    bool is_lingering; // the last word is said
    int64_t deadline;  // of the lingering
    int64_t told_ms;
    int64_t told_batch_rows;
    uint64_t stalled_tail; // the ring's tail and the bell's `others` when it was found full
    int64_t stalled_deadline;

    pthread_mutex_t mutex; // guards what follows
    struct tfos__buffer mail;
    bool has_last_mail, is_stopping;
    bool has_ended, is_stalled;
    uint64_t wanted_size;
    struct tfos__lane *given_lane;
};

struct tfos__relay_lane *tfos__relay_last_lane(const struct tfos__relay *relay);
enum tfos_status tfos__relay_add_lane(struct tfos__relay *relay, struct tfos__lane *lane,
                                      struct tfos_error *err);
void tfos__relay_leave_first_lane(struct tfos__relay *relay);

/// Rows published so far, first_row included.
uint64_t tfos__relay_published_rows(const struct tfos__relay *relay);

/// Queues the last message (taken over) for the writer; any later one is dropped.
void tfos__relay_say_last(struct tfos__relay *relay, json_t *message);
void tfos__relay_wake_host(const struct tfos__relay *relay);

/// Moves on with what comes in. AGAIN when it must wait for something; BUSY when fenced; CLOSED
/// when the writer has gone.
enum tfos_status tfos__relay_take_in(struct tfos__relay *relay, bool *has_moved,
                                     struct tfos_error *err);

/// Moves on with what goes out.
enum tfos_status tfos__relay_give_out(struct tfos__relay *relay, bool *has_moved,
                                      struct tfos_error *err);

#endif
