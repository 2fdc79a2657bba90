// SPDX-License-Identifier: Apache-2.0
// An event file is a TFRecord file of tensorflow.Event messages (tensorflow/core/util/event.proto),
// of which this file encodes the few fields that a scalar needs. Files are opened for each point:
// between two there is no descriptor to keep, however many nodes there are.
#include "node/event_writer.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <tfos/record.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#define RUN "tfos"
#define FILE_VERSION "brain.Event:2"
#define MESSAGE_CAPACITY 1024 // a version, or all scalars of a run

// Numbers of fields.
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/// An encoded protobuf message.
struct message {
    uint8_t bytes[MESSAGE_CAPACITY];
    size_t size;
};

/// A scalar and where the driver's message has it. TensorBoard makes a group of what has the same
/// name before the slash, and shows twelve of a group.
struct scalar {
    const char *tag;
    const char *key;
    double unit;
};

#define FEED_COUNT 6 // of the scalars, the first, are about rows that are fed

static const struct scalar scalars_of_a_run[] = {
    {"tfos/rows_per_second", "rows_per_second", 1},
    {"tfos/megabytes_per_second", "bytes_per_second", 1e6},
    {"tfos/ring_fill", "ring_fill", 1},
    {"tfos/spark_wait", "reader_wait", 1},
    {"tfos/trainer_wait", "writer_wait", 1},
    {"tfos/rows", "rows", 1}, // of the cluster only, and what follows of nodes only
    {"tfos_step/total_ms", "step_ms", 1},
    {"tfos_step/compute_ms", "step_compute_ms", 1},
    {"tfos_step/exchange_ms", "step_exchange_ms", 1},
    {"tfos_step/wait_ms", "step_wait_ms", 1},
    {"tfos_step/data_ms", "step_data_ms", 1},
    {"tfos_async/steps_pushed", "steps_pushed", 1},
    {"tfos_async/steps_behind", "steps_behind", 1},
    {"tfos_async/staleness", "staleness", 1},
};

static void put(struct message *message, const void *data, size_t size)
{
    assert(size <= sizeof(message->bytes) - message->size);
    memcpy(message->bytes + message->size, data, size);
    message->size += size;
}

static void put_varint(struct message *message, uint64_t value)
{
    uint8_t byte;
    for (; value >= 0x80; value >>= 7) {
        byte = (uint8_t)(value | 0x80);
        put(message, &byte, 1);
    }
    byte = (uint8_t)value;
    put(message, &byte, 1);
}

static void put_key(struct message *message, int field, int wire)
{
    put_varint(message, (uint64_t)field << 3 | (uint64_t)wire);
}

static void put_bytes(struct message *message, int field, const void *data, size_t size)
{
    put_key(message, field, WIRE_BYTES);
    put_varint(message, size);
    put(message, data, size);
}

static void put_double(struct message *message, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = htole64(bits);
    put_key(message, field, WIRE_FIXED64);
    put(message, &bits, sizeof(bits));
}

static void put_float(struct message *message, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = htole32(bits);
    put_key(message, field, WIRE_FIXED32);
    put(message, &bits, sizeof(bits));
}

static void begin_event(struct message *event)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    event->size = 0;
    put_double(event, EVENT_WALL_TIME, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
}

/// The event that has the scalars which `figures` knows; false when there are none.
static bool make_points(const json_t *figures, bool is_fed, int64_t step, struct message *event)
{
    struct message summary = {.size = 0};
    for (size_t i = is_fed ? 0 : FEED_COUNT;
         i < sizeof(scalars_of_a_run) / sizeof(*scalars_of_a_run); i++) {
        const struct scalar *scalar = &scalars_of_a_run[i];
        const json_t *number = json_object_get(figures, scalar->key);
        struct message value = {.size = 0};
        if (!json_is_number(number))
            continue;
        put_bytes(&value, VALUE_TAG, scalar->tag, strlen(scalar->tag));
        put_float(&value, VALUE_SIMPLE, (float)(json_number_value(number) / scalar->unit));
        put_bytes(&summary, SUMMARY_VALUE, value.bytes, value.size);
    }
    begin_event(event);
    put_key(event, EVENT_STEP, WIRE_VARINT);
    put_varint(event, (uint64_t)step);
    put_bytes(event, EVENT_SUMMARY, summary.bytes, summary.size);
    return summary.size > 0;
}

static enum tfos_status append(int fd, const struct message *event, const char *path,
                               struct tfos_error *err)
{
    struct tfos_record_frame frame;
    tfos_record_frame_init(&frame, event->bytes, event->size);
    const struct iovec parts[] = {{.iov_base = frame.head, .iov_len = sizeof(frame.head)},
                                  {.iov_base = (void *)event->bytes, .iov_len = event->size},
                                  {.iov_base = frame.tail, .iov_len = sizeof(frame.tail)}};
    ssize_t written = writev(fd, parts, 3);
    if (written < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot write to %s", path);
    if ((size_t)written != sizeof(frame.head) + event->size + sizeof(frame.tail))
        return tfos__fail(err, TFOS_IO, "node: cannot write to %s: there is no more space", path);
    return TFOS_OK;
}

static enum tfos_status append_to(const char *path, const struct message *event,
                                  struct tfos_error *err)
{
    struct stat info;
    enum tfos_status status = TFOS_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot open %s", path);
    if (fstat(fd, &info) == 0 && info.st_size == 0) {
        struct message version;
        begin_event(&version);
        put_bytes(&version, EVENT_FILE_VERSION, FILE_VERSION, strlen(FILE_VERSION));
        status = append(fd, &version, path, err);
    }
    if (status == TFOS_OK)
        status = append(fd, event, path, err);
    close(fd);
    return status;
}

/// Makes the folders above the file at `path`.
static enum tfos_status make_folders(char *path, struct tfos_error *err)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool is_made = mkdir(path, 0777) == 0 || errno == EEXIST;
        enum tfos_status status =
            is_made ? TFOS_OK : tfos__fail_errno(err, TFOS_IO, "node: cannot make %s", path);
        *slash = '/';
        TFOS__TRY(status);
    }
    return TFOS_OK;
}

/// Appends a point to the run `name` below ours; NULL: to ours.
static enum tfos_status write_run(const struct tfos__node_event_writer *writer, const char *name,
                                  const json_t *figures, bool is_fed, int64_t step,
                                  struct tfos_error *err)
{
    struct message event;
    if (!make_points(figures, is_fed, step, &event))
        return TFOS_OK;
    char *path = tfos__format("%s/" RUN "/%s%sevents.out.tfevents.%lld.%s.%d.tfos",
                              writer->log_directory, name ? name : "", name ? "/" : "",
                              (long long)writer->begun_s, writer->host, (int)getpid());
    if (!path)
        return tfos__no_memory(err, "node", "the name of an event file");
    // In TensorBoard's names of runs a colon is no trouble, in some file systems it is.
    for (char *colon = path + strlen(writer->log_directory); (colon = strchr(colon, ':'));)
        *colon = '_';
    enum tfos_status status = make_folders(path, err);
    if (status == TFOS_OK)
        status = append_to(path, &event, err);
    tfos__free(path);
    return status;
}

enum tfos_status tfos__node_event_writer_write(const struct tfos__node_event_writer *writer,
                                               const json_t *figures, struct tfos_error *err)
{
    int64_t step = tfos__json_int_or(figures, "uptime_s", 0);
    const json_t *progress = json_object_get(figures, "progress");
    // A cluster that reads by itself would have zeros.
    bool is_fed = tfos__json_bool_or(progress, "feeding", false) ||
                  tfos__json_int_or(progress, "rows", 0) > 0;
    const char *name;
    json_t *rates;
    TFOS__TRY(write_run(writer, NULL, progress, is_fed, step, err));
    json_object_foreach(json_object_get(figures, "nodes"), name, rates)
    {
        TFOS__TRY(write_run(writer, name, rates, is_fed, step, err));
    }
    return TFOS_OK;
}
