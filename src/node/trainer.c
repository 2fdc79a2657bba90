// SPDX-License-Identifier: Apache-2.0
/// The trainer's side of its link to the node. One thread does all reading and writing of the
/// channel; others queue messages and wait on a condition. Invariant: everything below `mutex` in
/// the struct is touched only with it held. A process forked from the trainer has the handle but
/// not the thread, so every call checks whose it is.
#include <tfos/trainer.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
#include "node/text.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CONTEXT_TIMEOUT_MS 30000
#define FEED_TIMEOUT_MS 30000
#define FLUSH_TIMEOUT_MS 2000
#define AGREE_TIMEOUT_MS 600000
#define NAME_LIMIT 256
#define REASON_SIZE 16384

/// One name to agree on; lives on the stack of the thread that waits for it.
struct agreement {
    const char *name;
    char *values;  ///< owned; the answer
    char *refusal; ///< owned; why there will be none
    struct agreement *next;
};

enum feed_state { FEED_CLOSED, FEED_ASKED, FEED_OPEN, FEED_REFUSED };

struct tfos_trainer {
    pid_t pid; ///< of the process that opened it
    json_t *context;
    char *context_text;
    int payload_fd;
    int wake_fd; ///< an eventfd: there is something to write, or the end has come
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tfos__channel *channel; ///< owned
    bool is_closing;
    enum tfos_status link; ///< OK until the node has gone
    struct tfos_error link_error;
    struct agreement *agreements; ///< borrowed, those that somebody waits for
    enum feed_state feed;
    char *queue;                     ///< owned; the name of the one queue that was asked for
    struct tfos_feed_reader *reader; ///< owned
    char *refusal;                   ///< owned; why there is no reader
};

// ---- the thread

static void take_feed(struct tfos_trainer *trainer, int fd)
{
    if (fd < 0 || trainer->feed != FEED_ASKED) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct tfos_error err;
    if (tfos_feed_reader_open(fd, &trainer->reader, &err) == TFOS_OK) {
        trainer->feed = FEED_OPEN;
    } else {
        trainer->refusal = tfos__strdup(err.message);
        trainer->feed = FEED_REFUSED;
    }
}

static void take_lane(struct tfos_trainer *trainer, const json_t *message, int fd)
{
    if (fd < 0 || !trainer->reader) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct tfos_error err;
    int lane = (int)tfos__json_int_or(message, "lane", -1);
    enum tfos_status status = tfos_feed_reader_add_lane(trainer->reader, lane, fd, &err);
    if (status < 0)
        tfos_feed_reader_fail(trainer->reader, status, err.message);
}

static void take_agreement(struct tfos_trainer *trainer, const json_t *message, bool is_agreed)
{
    const char *name = tfos__json_string_or(message, "name", "");
    struct agreement *agreement = trainer->agreements;
    while (agreement && strcmp(agreement->name, name) != 0)
        agreement = agreement->next;
    if (!agreement || agreement->values || agreement->refusal)
        return; // its thread has given up waiting
    if (is_agreed)
        agreement->values = tfos__json_text(json_object_get(message, "values"));
    if (!agreement->values)
        agreement->refusal =
            tfos__strdup(tfos__json_string_or(message, "message", "the answer cannot be read"));
}

static void follow(struct tfos_trainer *trainer, const json_t *message, int fd)
{
    const char *type = tfos__json_string_or(message, "type", "");
    if (strcmp(type, "feed") == 0) {
        take_feed(trainer, fd);
        return;
    }
    if (strcmp(type, "lane") == 0) {
        take_lane(trainer, message, fd);
        return;
    }
    if (fd >= 0)
        close(fd);
    if (strcmp(type, "refused") == 0 && trainer->feed == FEED_ASKED) {
        trainer->refusal = tfos__strdup(tfos__json_string_or(message, "message", ""));
        trainer->feed = FEED_REFUSED;
    } else if (strcmp(type, "agreed") == 0 || strcmp(type, "disagreed") == 0) {
        take_agreement(trainer, message, strcmp(type, "agreed") == 0);
    }
}

/// Reads, follows and writes all that can be; notes the end of the link.
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
    if (status < 0 && trainer->link == TFOS_OK) {
        trainer->link = tfos__fail(&trainer->link_error, TFOS_CLOSED,
                                   "trainer: the node has gone: %s", err.message);
        if (trainer->reader)
            tfos_feed_reader_fail(trainer->reader, TFOS_CLOSED, trainer->link_error.message);
    }
    pthread_cond_broadcast(&trainer->changed);
}

static void *run(void *argument)
{
    struct tfos_trainer *trainer = argument;
    pthread_mutex_lock(&trainer->mutex);
    while (!trainer->is_closing && trainer->link == TFOS_OK) {
        struct pollfd slots[] = {
            {.fd = tfos__channel_fd(trainer->channel),
             .events = (short)tfos__channel_events(trainer->channel)},
            {.fd = trainer->wake_fd, .events = POLLIN},
        };
        pthread_mutex_unlock(&trainer->mutex);
        int count = poll(slots, 2, -1);
        eventfd_t wakes;
        if (count > 0 && slots[1].revents)
            (void)eventfd_read(trainer->wake_fd, &wakes);
        pthread_mutex_lock(&trainer->mutex);
        if (count > 0)
            serve(trainer);
    }
    pthread_mutex_unlock(&trainer->mutex);
    return NULL;
}

// ---- opening and closing

/// Makes the kernel end this process with the one that started it: a node that is killed cannot do
/// so itself.
static enum tfos_status die_with_parent(struct tfos_error *err)
{
    pid_t parent = getppid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        return tfos__fail_errno(err, TFOS_IO, "trainer: cannot tie this process to its node");
    // The parent may have died just before.
    if (getppid() != parent)
        return tfos__fail(err, TFOS_CLOSED, "trainer: the node (pid %d) has gone", (int)parent);
    return TFOS_OK;
}

static enum tfos_status receive_context(struct tfos_trainer *trainer, struct tfos_error *err)
{
    int fds[TFOS__FRAME_DESCRIPTORS];
    int fd_count = 0;
    TFOS__TRY(tfos__channel_receive(trainer->channel, &trainer->context, fds, &fd_count,
                                    tfos__deadline(CONTEXT_TIMEOUT_MS), err));
    for (int i = 1; i < fd_count; i++)
        close(fds[i]);
    if (fd_count > 0)
        trainer->payload_fd = fds[0];
    const char *type;
    TFOS__TRY(tfos__json_get_string(trainer->context, "type", &type, err));
    if (strcmp(type, "context") != 0)
        return tfos__fail(err, TFOS_CORRUPT,
                          "trainer: the node's first message is \"%s\", not \"context\"", type);
    trainer->context_text = tfos__json_text(trainer->context);
    return trainer->context_text ? TFOS_OK : tfos__no_memory(err, "trainer", "the context");
}

static enum tfos_status start_thread(struct tfos_trainer *trainer, struct tfos_error *err)
{
    trainer->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (trainer->wake_fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "trainer: cannot make an eventfd");
    // Signals are for the program's own threads: Python runs its handlers on the main one.
    sigset_t all, old_mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_mask);
    int fault = pthread_create(&trainer->thread, NULL, run, trainer);
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    if (fault != 0)
        return tfos__fail(err, TFOS_IO, "trainer: cannot start a thread: %s", strerror(fault));
    trainer->has_thread = true;
    return TFOS_OK;
}

static void init_locks(struct tfos_trainer *trainer)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&trainer->mutex, NULL);
    pthread_cond_init(&trainer->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

enum tfos_status tfos_trainer_open(int fd, struct tfos_trainer **out, struct tfos_error *err)
{
    struct tfos_trainer *trainer = tfos__alloc(1, sizeof *trainer);
    if (!trainer)
        return tfos__no_memory(err, "trainer", "a trainer");
    trainer->pid = getpid();
    trainer->payload_fd = trainer->wake_fd = -1;
    init_locks(trainer);
    enum tfos_status status = TFOS_OK;
    // The link's end must mean this process's end, not that of the last program it started.
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        status = tfos__fail_errno(
            err, TFOS_INVALID,
            "trainer: descriptor %d is not open; only a node can start a trainer", fd);
    if (status == TFOS_OK)
        status = tfos__channel_open(fd, TFOS__CHANNEL_UNIX, NULL, "node", &trainer->channel, err);
    if (status == TFOS_OK)
        status = die_with_parent(err);
    if (status == TFOS_OK)
        status = receive_context(trainer, err);
    if (status == TFOS_OK)
        status = start_thread(trainer, err);
    if (status < 0) {
        tfos_trainer_close(trainer);
        return status;
    }
    *out = trainer;
    return TFOS_OK;
}

const char *tfos_trainer_context(const struct tfos_trainer *trainer)
{
    return trainer->context_text;
}

int tfos_trainer_payload_fd(const struct tfos_trainer *trainer)
{
    return trainer->payload_fd;
}

void tfos_trainer_close(struct tfos_trainer *trainer)
{
    // A forked process has no thread to join, and the rings are its parent's: it leaves everything as it is.
    if (!trainer || trainer->pid != getpid())
        return;
    if (trainer->has_thread) {
        pthread_mutex_lock(&trainer->mutex);
        trainer->is_closing = true;
        pthread_mutex_unlock(&trainer->mutex);
        (void)eventfd_write(trainer->wake_fd, 1);
        pthread_join(trainer->thread, NULL);
    }
    pthread_cond_destroy(&trainer->changed);
    pthread_mutex_destroy(&trainer->mutex);
    tfos_feed_reader_close(trainer->reader);
    tfos__channel_close(trainer->channel);
    if (trainer->wake_fd >= 0)
        close(trainer->wake_fd);
    if (trainer->payload_fd >= 0)
        close(trainer->payload_fd);
    json_decref(trainer->context);
    tfos__free(trainer->context_text);
    tfos__free(trainer->queue);
    tfos__free(trainer->refusal);
    tfos__free(trainer);
}

// ---- asking

/// Takes the lock for a call of this process. A forked one may have inherited it locked.
static enum tfos_status lock(struct tfos_trainer *trainer, struct tfos_error *err)
{
    pid_t pid = getpid();
    if (pid != trainer->pid)
        return tfos__fail(
            err, TFOS_INVALID,
            "trainer: process %d cannot use the link of process %d that it was forked from",
            (int)pid, (int)trainer->pid);
    pthread_mutex_lock(&trainer->mutex);
    return TFOS_OK;
}

/// Waits for a change until `deadline`; the lock is released meanwhile. False once it is past.
static bool wait_for_change(struct tfos_trainer *trainer, int64_t deadline)
{
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
    return pthread_cond_timedwait(&trainer->changed, &trainer->mutex, &until) == 0 ||
           tfos__remaining_ms(deadline) != 0;
}

/// Queues a message (reference taken over) and writes it if the kernel takes it. With the lock
/// held.
static enum tfos_status send(struct tfos_trainer *trainer, json_t *message, struct tfos_error *err)
{
    if (trainer->link < 0) {
        json_decref(message);
        if (err)
            *err = trainer->link_error;
        return trainer->link;
    }
    TFOS__TRY(tfos__channel_queue(trainer->channel, message, NULL, 0, err));
    (void)eventfd_write(trainer->wake_fd, 1);
    return TFOS_OK;
}

/// Waits until all that is queued has been written, because this process may be about to end.
static enum tfos_status flush(struct tfos_trainer *trainer, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(FLUSH_TIMEOUT_MS);
    while (trainer->link == TFOS_OK && tfos__channel_pending_size(trainer->channel) > 0) {
        if (!wait_for_change(trainer, deadline))
            return tfos__fail(err, TFOS_TIMEOUT, "trainer: the node took no message for %d ms",
                              FLUSH_TIMEOUT_MS);
    }
    if (trainer->link < 0 && err)
        *err = trainer->link_error;
    return trainer->link;
}

static enum tfos_status say(struct tfos_trainer *trainer, json_t *message, struct tfos_error *err)
{
    enum tfos_status status = lock(trainer, err);
    if (status < 0) {
        json_decref(message);
        return status;
    }
    status = send(trainer, message, err);
    if (status == TFOS_OK)
        status = flush(trainer, err);
    pthread_mutex_unlock(&trainer->mutex);
    return status;
}

static enum tfos_status await_feed(struct tfos_trainer *trainer, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(FEED_TIMEOUT_MS);
    while (trainer->feed == FEED_ASKED && trainer->link == TFOS_OK) {
        if (!wait_for_change(trainer, deadline))
            return tfos__fail(err, TFOS_TIMEOUT,
                              "trainer: the node did not open queue \"%s\" within %d ms",
                              trainer->queue, FEED_TIMEOUT_MS);
    }
    if (trainer->feed == FEED_REFUSED)
        return tfos__fail(err, TFOS_NOT_FOUND, "trainer: there is no queue \"%s\" to read: %s",
                          trainer->queue, trainer->refusal ? trainer->refusal : "out of memory");
    if (trainer->feed == FEED_OPEN)
        return TFOS_OK;
    if (err)
        *err = trainer->link_error;
    return trainer->link;
}

/// Asks for the queue unless that was done. With the lock held.
static enum tfos_status ask_feed(struct tfos_trainer *trainer, const char *name,
                                 struct tfos_error *err)
{
    if (trainer->feed != FEED_CLOSED && trainer->feed != FEED_REFUSED) {
        if (strcmp(trainer->queue, name) == 0)
            return TFOS_OK;
        return tfos__fail(err, TFOS_NOT_FOUND, "trainer: there is no queue \"%s\" beside \"%s\"",
                          name, trainer->queue);
    }
    char *queue = tfos__strdup(name);
    if (!queue)
        return tfos__no_memory(err, "trainer", "a queue's name");
    tfos__free(trainer->queue);
    tfos__free(trainer->refusal);
    trainer->queue = queue;
    trainer->refusal = NULL;
    TFOS__TRY(send(trainer, json_pack("{s:s, s:s}", "type", "open_feed", "queue", name), err));
    trainer->feed = FEED_ASKED;
    return TFOS_OK;
}

enum tfos_status tfos_trainer_open_feed(struct tfos_trainer *trainer, const char *name,
                                        struct tfos_feed_reader **out, struct tfos_error *err)
{
    if (!tfos__json_bool_or(trainer->context, "fed", false))
        return tfos__fail(
            err, TFOS_NOT_FOUND,
            "trainer: there is no queue \"%s\" to read: this node is not fed by Spark (it takes "
            "InputMode.SPARK, and a chief, master or worker)",
            name);
    TFOS__TRY(lock(trainer, err));
    enum tfos_status status = ask_feed(trainer, name, err);
    if (status == TFOS_OK)
        status = await_feed(trainer, err);
    if (status == TFOS_OK)
        *out = trainer->reader;
    pthread_mutex_unlock(&trainer->mutex);
    return status;
}

static bool is_waited_for(const struct tfos_trainer *trainer, const char *name)
{
    const struct agreement *agreement = trainer->agreements;
    while (agreement && strcmp(agreement->name, name) != 0)
        agreement = agreement->next;
    return agreement != NULL;
}

/// Sends the value and waits for the answer, which is in `agreement` then. With the lock held.
static enum tfos_status await_agreement(struct tfos_trainer *trainer, struct agreement *agreement,
                                        json_t *value, int64_t timeout_ms, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    TFOS__TRY(
        send(trainer,
             json_pack("{s:s, s:s, s:O}", "type", "agree", "name", agreement->name, "value", value),
             err));
    while (!agreement->values && !agreement->refusal && trainer->link == TFOS_OK) {
        if (!wait_for_change(trainer, deadline))
            return tfos__fail(
                err, TFOS_TIMEOUT,
                "trainer: agreement \"%s\": not all members gave their value within %lld ms",
                agreement->name, (long long)timeout_ms);
    }
    if (agreement->values)
        return TFOS_OK;
    if (agreement->refusal)
        return tfos__fail(err, TFOS_CLOSED, "trainer: agreement \"%s\": %s", agreement->name,
                          agreement->refusal);
    if (err)
        *err = trainer->link_error;
    return trainer->link;
}

static enum tfos_status parse_value(const char *text, json_t **out, struct tfos_error *err)
{
    json_error_t cause;
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &cause);
    if (!value)
        return tfos__fail(err, TFOS_INVALID, "trainer: a value is no JSON: %s at byte %d",
                          cause.text, cause.position);
    *out = value;
    return TFOS_OK;
}

enum tfos_status tfos_trainer_agree(struct tfos_trainer *trainer, const char *name,
                                    const char *value_json, int64_t timeout_ms, char **values_json,
                                    struct tfos_error *err)
{
    if (name[0] == '\0' || strlen(name) > NAME_LIMIT)
        return tfos__fail(err, TFOS_INVALID,
                          "trainer: the name of an agreement has 1 to %d bytes, not %zu",
                          NAME_LIMIT, strlen(name));
    json_t *value;
    TFOS__TRY(parse_value(value_json, &value, err));
    struct agreement agreement = {.name = name};
    enum tfos_status status = lock(trainer, err);
    if (status < 0)
        goto drop_value;
    if (is_waited_for(trainer, name)) {
        status = tfos__fail(
            err, TFOS_INVALID,
            "trainer: agreement \"%s\" is waited for by another thread; each name is used once",
            name);
    } else {
        agreement.next = trainer->agreements;
        trainer->agreements = &agreement;
        status = await_agreement(trainer, &agreement, value,
                                 timeout_ms > 0 ? timeout_ms : AGREE_TIMEOUT_MS, err);
        struct agreement **place = &trainer->agreements;
        while (*place != &agreement)
            place = &(*place)->next;
        *place = agreement.next;
    }
    pthread_mutex_unlock(&trainer->mutex);
    if (status == TFOS_OK)
        *values_json = agreement.values;
    else
        tfos__free(agreement.values);
    tfos__free(agreement.refusal);
drop_value:
    json_decref(value);
    return status;
}

// ---- telling

enum tfos_status tfos_trainer_report(struct tfos_trainer *trainer, const char *values_json,
                                     struct tfos_error *err)
{
    json_t *values;
    TFOS__TRY(parse_value(values_json, &values, err));
    const char *key;
    json_t *value;
    if (!json_is_object(values)) {
        json_decref(values);
        return tfos__fail(err, TFOS_INVALID, "trainer: a report must be a JSON object of numbers");
    }
    json_object_foreach(values, key, value)
    {
        if (json_is_number(value))
            continue;
        enum tfos_status status =
            tfos__fail(err, TFOS_INVALID, "trainer: \"%s\" in a report must be a number", key);
        json_decref(values);
        return status;
    }
    return say(trainer, json_pack("{s:s, s:o}", "type", "report", "values", values), err);
}

enum tfos_status tfos_trainer_release_port(struct tfos_trainer *trainer, struct tfos_error *err)
{
    return say(trainer, json_pack("{s:s}", "type", "release_port"), err);
}

enum tfos_status tfos_trainer_terminate(struct tfos_trainer *trainer, struct tfos_error *err)
{
    return say(trainer, json_pack("{s:s}", "type", "terminate"), err);
}

enum tfos_status tfos_trainer_fail(struct tfos_trainer *trainer, const char *message,
                                   struct tfos_error *err)
{
    // The end of a traceback says most.
    size_t size = strlen(message);
    const char *tail = tfos__text_tail(message, size, REASON_SIZE);
    json_t *text = tfos__text_to_json(tail, size - (size_t)(tail - message));
    return say(trainer, json_pack("{s:s, s:o}", "type", "fail", "message", text), err);
}
