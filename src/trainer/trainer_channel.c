// SPDX-License-Identifier: Apache-2.0
// One thread does all reading and writing of the channel; others queue messages and wait.
#include "trainer/trainer_channel.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "feed/feed.h"

#define FLUSH_TIMEOUT_MS 2000
#define STEPS_INTERVAL_MS 1000

static struct tfos__trainer_feed_queue *find_queue(const struct tfos_trainer *trainer,
                                                   const char *name)
{
    struct tfos__trainer_feed_queue *queue = trainer->queues;
    while (queue && strcmp(queue->name, name) != 0)
        queue = queue->next;
    return queue;
}

struct tfos__trainer_feed_queue *tfos__trainer_channel_get_queue(struct tfos_trainer *trainer,
                                                                 const char *name)
{
    struct tfos__trainer_feed_queue *queue = find_queue(trainer, name);
    if (queue)
        return queue;
    char *copy = tfos__strdup(name);
    queue = copy ? tfos__alloc(1, sizeof(*queue)) : NULL;
    if (!queue) {
        tfos__free(copy);
        return NULL;
    }
    queue->name = copy;
    queue->next = trainer->queues;
    trainer->queues = queue;
    return queue;
}

void tfos__trainer_channel_clear_queues(struct tfos_trainer *trainer)
{
    while (trainer->queues) {
        struct tfos__trainer_feed_queue *queue = trainer->queues;
        trainer->queues = queue->next;
        tfos__feed_reader_close(queue->reader);
        tfos__free(queue->name);
        tfos__free(queue->refusal);
        for (int i = 0; i < queue->description_count; i++)
            tfos__free(queue->descriptions[i].schema);
        tfos__free(queue);
    }
}

static void open_reader(const struct tfos_trainer *trainer, struct tfos__trainer_feed_queue *queue,
                        int fd)
{
    if (fd < 0 || !queue || queue->feed != TFOS__TRAINER_FEED_ASKED) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct tfos_error err;
    if (tfos__feed_reader_open(fd, &queue->reader, &err) == TFOS_OK) {
        if (!tfos__json_bool_or(trainer->context, "allow_pickle", true))
            tfos__feed_reader_refuse_pickles(queue->reader);
        queue->feed = TFOS__TRAINER_FEED_OPEN;
    } else {
        queue->refusal = tfos__strdup(err.message);
        queue->feed = TFOS__TRAINER_FEED_REFUSED;
    }
}

static void add_channel(const struct tfos__trainer_feed_queue *queue, const json_t *message, int fd)
{
    if (fd < 0 || !queue || !queue->reader) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct tfos_error err;
    int channel = (int)tfos__json_int_or(message, "channel", -1);
    enum tfos_status status = tfos__feed_reader_add_channel(queue->reader, channel, fd, &err);
    if (status < 0)
        tfos_feed_reader_fail(queue->reader, status, err.message);
}

static void take_refusal(struct tfos__trainer_feed_queue *queue, const json_t *message)
{
    if (!queue || queue->feed != TFOS__TRAINER_FEED_ASKED)
        return;
    queue->refusal = tfos__strdup(tfos__json_string_or(message, "message", ""));
    queue->feed = TFOS__TRAINER_FEED_REFUSED;
}

static void take_description(struct tfos_trainer *trainer, const char *name, const json_t *message)
{
    struct tfos__trainer_feed_queue *queue = tfos__trainer_channel_get_queue(trainer, name);
    char *schema = tfos__strdup(tfos__json_string_or(message, "schema", "null"));
    if (!queue || !schema) {
        tfos__free(schema);
        return;
    }
    // Of feeds that were described so long ago, a trainer takes the schema from their rows.
    if (queue->description_count == TFOS__TRAINER_DESCRIPTIONS)
        tfos__free(queue->descriptions[--queue->description_count].schema);
    memmove(&queue->descriptions[1], &queue->descriptions[0],
            (size_t)queue->description_count * sizeof(queue->descriptions[0]));
    queue->descriptions[0] =
        (struct tfos__trainer_description){schema, tfos__json_int_or(message, "first_feed", 1),
                                           tfos__json_int_or(message, "last_feed", 0)};
    queue->description_count++;
}

struct tfos__trainer_agreement *
tfos__trainer_channel_find_agreement(const struct tfos_trainer *trainer, const char *name)
{
    struct tfos__trainer_agreement *agreement = trainer->agreements;
    while (agreement && strcmp(agreement->name, name) != 0)
        agreement = agreement->next;
    return agreement;
}

static void take_agreement(struct tfos_trainer *trainer, const json_t *message, const char *type)
{
    struct tfos__trainer_agreement *agreement =
        tfos__trainer_channel_find_agreement(trainer, tfos__json_string_or(message, "name", ""));
    if (!agreement || agreement->values || agreement->refusal || agreement->missing)
        return; // its thread waits no more
    if (strcmp(type, "pending") == 0) {
        agreement->missing = tfos__strdup(tfos__json_string_or(message, "nodes", ""));
        return;
    }
    if (strcmp(type, "agreed") == 0)
        agreement->values = tfos__json_text(json_object_get(message, "values"));
    if (!agreement->values)
        agreement->refusal =
            tfos__strdup(tfos__json_string_or(message, "message", "the answer cannot be read"));
}

static void follow(struct tfos_trainer *trainer, const json_t *message, int fd)
{
    const char *type = tfos__json_string_or(message, "type", "");
    const char *name = tfos__json_string_or(message, "queue", "");
    if (strcmp(type, "feed") == 0) {
        open_reader(trainer, find_queue(trainer, name), fd);
        return;
    }
    if (strcmp(type, "channel") == 0) {
        add_channel(find_queue(trainer, name), message, fd);
        return;
    }
    if (fd >= 0)
        close(fd);
    if (strcmp(type, "refused") == 0) {
        take_refusal(find_queue(trainer, name), message);
    } else if (strcmp(type, "describe") == 0) {
        take_description(trainer, name, message);
    } else if (strcmp(type, "agreed") == 0 || strcmp(type, "disagreed") == 0 ||
               strcmp(type, "pending") == 0) {
        take_agreement(trainer, message, type);
    } else if (strcmp(type, "port_released") == 0) {
        trainer->is_port_released = true;
    }
}

/// Reads, follows and writes all that can be; notes the end of the channel.
static void serve(struct tfos_trainer *trainer)
{
    struct tfos_error err;
    json_t *message;
    int fds[TFOS__FRAME_DESCRIPTORS];
    int fd_count = 0;
    enum tfos_status status;
    (void)tfos__channel_pump(trainer->channel,
                             &err); // next() gives its failure behind the last message
    while ((status = tfos__channel_next(trainer->channel, &message, fds, &fd_count, &err)) ==
           TFOS_OK) {
        for (int i = 1; i < fd_count; i++)
            close(fds[i]);
        follow(trainer, message, fd_count > 0 ? fds[0] : -1);
        json_decref(message);
    }
    if (status < 0 && trainer->failure == TFOS_OK) {
        trainer->failure =
            tfos__fail(&trainer->cause, TFOS_CLOSED, "trainer: the node has gone: %s", err.message);
        for (struct tfos__trainer_feed_queue *queue = trainer->queues; queue; queue = queue->next)
            if (queue->reader)
                tfos_feed_reader_fail(queue->reader, TFOS_CLOSED, trainer->cause.message);
    }
    pthread_cond_broadcast(&trainer->monitor.changed);
}

/// Reports steps to the node when that is due, unless it has not yet read the report before.
static void report_steps(struct tfos_trainer *trainer)
{
    if (trainer->steps_due == 0 || tfos__remaining_ms(trainer->steps_due) > 0)
        return;
    trainer->steps_due = tfos__deadline(STEPS_INTERVAL_MS);
    if (tfos__channel_pending_size(trainer->channel) > 0)
        return;
    json_t *message = tfos__trainer_collective_steps(trainer);
    if (message && tfos__channel_queue(trainer->channel, message, NULL, 0, NULL) == TFOS_OK)
        serve(trainer);
}

void tfos__trainer_channel_watch_steps(struct tfos_trainer *trainer)
{
    if (trainer->steps_due > 0)
        return;
    trainer->steps_due = tfos__deadline(STEPS_INTERVAL_MS);
    (void)eventfd_write(trainer->wake_fd, 1);
}

static void *run(void *argument)
{
    struct tfos_trainer *trainer = argument;
    pthread_mutex_lock(&trainer->monitor.mutex);
    serve(trainer); // what was read with the context, which poll() does not report
    while (!trainer->is_closing && trainer->failure == TFOS_OK) {
        struct pollfd slots[] = {
            {.fd = tfos__channel_fd(trainer->channel),
             .events = (short)tfos__channel_events(trainer->channel)},
            {.fd = trainer->wake_fd, .events = POLLIN},
        };
        int timeout_ms = trainer->steps_due > 0 ? tfos__remaining_ms(trainer->steps_due) : -1;
        pthread_mutex_unlock(&trainer->monitor.mutex);
        int count = poll(slots, 2, timeout_ms);
        eventfd_t wakes;
        if (count > 0 && slots[1].revents)
            (void)eventfd_read(trainer->wake_fd, &wakes);
        pthread_mutex_lock(&trainer->monitor.mutex);
        if (count > 0)
            serve(trainer);
        report_steps(trainer);
    }
    pthread_mutex_unlock(&trainer->monitor.mutex);
    return NULL;
}

enum tfos_status tfos__trainer_channel_start(struct tfos_trainer *trainer, struct tfos_error *err)
{
    tfos__monitor_init(&trainer->monitor);
    trainer->has_monitor = true;
    trainer->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (trainer->wake_fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "trainer: cannot make an eventfd");
    int fault = tfos__thread_start(&trainer->thread, NULL, run, trainer);
    if (fault != 0)
        return tfos__fail(err, TFOS_IO, "trainer: cannot start a thread: %s", strerror(fault));
    trainer->has_thread = true;
    return TFOS_OK;
}

void tfos__trainer_channel_stop(struct tfos_trainer *trainer)
{
    if (trainer->has_thread) {
        pthread_mutex_lock(&trainer->monitor.mutex);
        trainer->is_closing = true;
        pthread_mutex_unlock(&trainer->monitor.mutex);
        (void)eventfd_write(trainer->wake_fd, 1);
        pthread_join(trainer->thread, NULL);
    }
    if (trainer->has_monitor)
        tfos__monitor_clear(&trainer->monitor);
    if (trainer->wake_fd >= 0)
        close(trainer->wake_fd);
}

enum tfos_status tfos__trainer_channel_lock(struct tfos_trainer *trainer, struct tfos_error *err)
{
    if (tfos__fork_guard_is_inherited(&trainer->guard))
        return tfos__fail(
            err, TFOS_INVALID,
            "trainer: process %d cannot use the link of process %d that it was forked from",
            (int)getpid(), trainer->guard.pid);
    pthread_mutex_lock(&trainer->monitor.mutex);
    return TFOS_OK;
}

void tfos__trainer_channel_unlock(struct tfos_trainer *trainer)
{
    pthread_mutex_unlock(&trainer->monitor.mutex);
}

static enum tfos_status give_failure(const struct tfos_trainer *trainer, struct tfos_error *err)
{
    if (err)
        *err = trainer->cause;
    return trainer->failure;
}

enum tfos_status tfos__trainer_channel_await(struct tfos_trainer *trainer,
                                             bool (*is_done)(const void *context),
                                             const void *context, struct tfos__wait *wait,
                                             struct tfos_error *err)
{
    while (!is_done(context)) {
        if (trainer->failure < 0)
            return give_failure(trainer, err);
        int64_t slice = tfos__wait_slice(wait);
        if (tfos__monitor_wait(&trainer->monitor, slice))
            continue;
        if (slice == wait->deadline)
            return TFOS_AGAIN;
        tfos__trainer_channel_unlock(trainer);
        enum tfos_status status = tfos__wait_check(wait, err);
        pthread_mutex_lock(&trainer->monitor.mutex);
        TFOS__TRY(status);
    }
    return TFOS_OK;
}

enum tfos_status tfos__trainer_channel_send(struct tfos_trainer *trainer, json_t *message,
                                            struct tfos_error *err)
{
    if (trainer->failure < 0) {
        json_decref(message);
        return give_failure(trainer, err);
    }
    TFOS__TRY(tfos__channel_queue(trainer->channel, message, NULL, 0, err));
    (void)eventfd_write(trainer->wake_fd, 1);
    return TFOS_OK;
}

static bool is_written(const void *trainer)
{
    return tfos__channel_pending_size(((const struct tfos_trainer *)trainer)->channel) == 0;
}

enum tfos_status tfos__trainer_channel_flush(struct tfos_trainer *trainer, struct tfos_error *err)
{
    enum tfos_status status = tfos__trainer_channel_await(
        trainer, is_written, trainer, TFOS__UNTIL(tfos__deadline(FLUSH_TIMEOUT_MS)), err);
    if (status != TFOS_AGAIN)
        return trainer->failure < 0 ? give_failure(trainer, err) : status;
    return tfos__fail(err, TFOS_TIMEOUT, "trainer: the node took no message for %d ms",
                      FLUSH_TIMEOUT_MS);
}
