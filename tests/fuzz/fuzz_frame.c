// SPDX-License-Identifier: Apache-2.0
// The frame parser on any bytes, in pieces whose sizes the input chooses: the result must not
// depend on how the stream was cut, and what was taken must come back the same when it is written
// and read again.
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    int frames;
    size_t used;
    enum tfos_status status;
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_round_trip(const json_t *message)
{
    struct tfos__buffer buffer = {0};
    struct tfos_error err;
    json_t *again;
    size_t size;
    enum tfos_status status = tfos__frame_append(&buffer, message, &err);
    if (status == TFOS_INVALID) { // escapes can make the text longer than the limit
        tfos__buffer_clear(&buffer);
        return;
    }
    require(status == TFOS_OK);
    size_t written = tfos__buffer_size(&buffer);
    require(tfos__frame_take(&buffer, &again, &size, &err) == TFOS_OK);
    require(size == written && tfos__buffer_size(&buffer) == 0);
    require(json_equal(message, again));
    json_decref(again);
    tfos__buffer_clear(&buffer);
}

static void take_frames(struct tfos__buffer *in, struct outcome *outcome, bool is_checked)
{
    struct tfos_error err;
    json_t *message;
    size_t size;
    while ((outcome->status = tfos__frame_take(in, &message, &size, &err)) == TFOS_OK) {
        outcome->frames++;
        outcome->used += size;
        require(json_is_object(message));
        if (is_checked)
            check_round_trip(message);
        json_decref(message);
    }
}

// Feeds the stream in pieces of 1 to `longest` bytes.
static struct outcome parse(const uint8_t *data, size_t size, size_t longest, bool is_checked)
{
    struct outcome outcome = {.status = TFOS_AGAIN};
    struct tfos__buffer in = {0};
    struct tfos_error err;
    size_t at = 0;
    while (at < size && outcome.status == TFOS_AGAIN) {
        size_t piece = 1 + (at * 7 + longest) % longest;
        if (piece > size - at)
            piece = size - at;
        require(tfos__buffer_append(&in, data + at, piece, &err) == TFOS_OK);
        at += piece;
        take_frames(&in, &outcome, is_checked);
    }
    require(outcome.status != TFOS_AGAIN || outcome.used + tfos__buffer_size(&in) == size);
    tfos__buffer_clear(&in);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct outcome whole = parse(data + 1, size - 1, size, true);
    struct outcome pieces = parse(data + 1, size - 1, 1u + data[0], false);
    require(whole.frames == pieces.frames && whole.used == pieces.used &&
            whole.status == pieces.status);
    return 0;
}
