// SPDX-License-Identifier: Apache-2.0
// The calls of a trainer: requests to its node, and reports.
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <tfos/spark_schema.h>
#include <tfos/trainer.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "trainer/trainer_channel.h"

#define CONTEXT_TIMEOUT_MS 30000
#define FEED_TIMEOUT_MS 30000
#define RELEASE_TIMEOUT_MS 30000
#define AGREE_TIMEOUT_MS 600000
#define DESCRIPTION_TIMEOUT_MS 600000
#define MISSING_TIMEOUT_MS 2000 // for the driver to name the nodes without a value
#define NAME_LIMIT 256
#define REASON_SIZE 16384
#define REPORT_LIMIT 16384
#define RESULT_LIMIT (1u << 20)

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

/// A node that was killed before die_with_parent() has left its messages, and this process to
/// another. The parent may also be a program that the user has put between the two.
static bool is_node_gone(const struct tfos_trainer *trainer)
{
    struct tfos__process_stat node;
    pid_t pid = (pid_t)tfos__json_int_or(trainer->context, "node_pid", 0);
    return pid != 0 && pid != getppid() &&
           (!tfos__process_get_stat(pid, &node) || node.state == 'Z');
}

/// Takes the key out of the context, which users see.
static enum tfos_status take_key(struct tfos_trainer *trainer, struct tfos_error *err)
{
    const char *text = tfos__json_string_or(trainer->context, "collective_key", NULL);
    if (!text)
        return TFOS_OK;
    TFOS__TRY(tfos__cluster_key_read(text, "trainer", trainer->key, err));
    trainer->has_key = true;
    json_object_del(trainer->context, "collective_key");
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
    if (is_node_gone(trainer))
        return tfos__fail(err, TFOS_CLOSED, "trainer: the node has gone");
    TFOS__TRY(tfos__queue_names_init(&trainer->queue_names,
                                     tfos__json_string_or(trainer->context, "queues", NULL), err));
    TFOS__TRY(take_key(trainer, err));
    trainer->context_text = tfos__json_text(trainer->context);
    return trainer->context_text ? TFOS_OK : tfos__no_memory(err, "trainer", "the context");
}

enum tfos_status tfos_trainer_open(int fd, struct tfos_trainer **out, struct tfos_error *err)
{
    struct tfos_trainer *trainer = tfos__alloc(1, sizeof(*trainer));
    if (!trainer)
        return tfos__no_memory(err, "trainer", "a trainer");
    trainer->payload_fd = trainer->wake_fd = -1;
    enum tfos_status status = tfos__fork_guard_init(&trainer->guard, err);
    // The channel must end with this process, not with the last program that it started.
    if (status == TFOS_OK && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
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
        status = tfos__trainer_channel_start(trainer, err);
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

static enum tfos_status send_message(struct tfos_trainer *trainer, json_t *message,
                                     struct tfos_error *err)
{
    enum tfos_status status = tfos__trainer_channel_lock(trainer, err);
    if (status < 0) {
        json_decref(message);
        return status;
    }
    status = tfos__trainer_channel_send(trainer, message, err);
    if (status == TFOS_OK)
        status = tfos__trainer_channel_flush(trainer, err);
    tfos__trainer_channel_unlock(trainer);
    return status;
}

void tfos_trainer_close(struct tfos_trainer *trainer)
{
    // A forked process has no thread to join, and the rings are its parent's: it changes nothing.
    if (!trainer || tfos__fork_guard_is_inherited(&trainer->guard))
        return;
    tfos__trainer_member_end_all(trainer);
    if (trainer->has_thread)
        (void)send_message(trainer, json_pack("{s:s}", "type", "done"), NULL);
    tfos__trainer_channel_stop(trainer);
    tfos__trainer_channel_clear_queues(trainer);
    tfos__channel_close(trainer->channel);
    if (trainer->payload_fd >= 0)
        close(trainer->payload_fd);
    while (trainer->group_names) {
        struct tfos__trainer_group_name *name = trainer->group_names;
        trainer->group_names = name->next;
        tfos__free(name->name);
        tfos__free(name);
    }
    json_decref(trainer->context);
    tfos__free(trainer->context_text);
    explicit_bzero(trainer->key, sizeof(trainer->key));
    tfos__fork_guard_clear(&trainer->guard);
    tfos__free(trainer);
}

// ---- queues

static bool is_answered(const void *queue)
{
    return ((const struct tfos__trainer_feed_queue *)queue)->feed != TFOS__TRAINER_FEED_ASKED;
}

static enum tfos_status await_feed(struct tfos_trainer *trainer,
                                   const struct tfos__trainer_feed_queue *queue,
                                   struct tfos_error *err)
{
    enum tfos_status status = tfos__trainer_channel_await(
        trainer, is_answered, queue, TFOS__UNTIL(tfos__deadline(FEED_TIMEOUT_MS)), err);
    if (status == TFOS_AGAIN)
        return tfos__fail(err, TFOS_TIMEOUT,
                          "trainer: the node did not open queue \"%s\" within %d ms", queue->name,
                          FEED_TIMEOUT_MS);
    if (queue->feed == TFOS__TRAINER_FEED_REFUSED)
        return tfos__fail(err, TFOS_NOT_FOUND, "trainer: cannot read queue \"%s\": %s", queue->name,
                          queue->refusal ? queue->refusal : "out of memory");
    return status;
}

/// Asks for the queue unless that was done. With the lock held.
static enum tfos_status request_feed(struct tfos_trainer *trainer,
                                     struct tfos__trainer_feed_queue *queue, struct tfos_error *err)
{
    if (queue->feed != TFOS__TRAINER_FEED_CLOSED && queue->feed != TFOS__TRAINER_FEED_REFUSED)
        return TFOS_OK;
    tfos__free(queue->refusal);
    queue->refusal = NULL;
    TFOS__TRY(tfos__trainer_channel_send(
        trainer, json_pack("{s:s, s:s}", "type", "open_feed", "queue", queue->name), err));
    queue->feed = TFOS__TRAINER_FEED_ASKED;
    return TFOS_OK;
}

static enum tfos_status check_queue(const struct tfos_trainer *trainer, const char *name,
                                    struct tfos_error *err)
{
    if (!tfos__json_bool_or(trainer->context, "fed", false))
        return tfos__fail(
            err, TFOS_NOT_FOUND,
            "trainer: there is no queue \"%s\" to read: this node is not fed by Spark (it takes "
            "InputMode.SPARK, and any role but a parameter server's)",
            name);
    int number;
    return tfos__fail_in(err, tfos__queue_names_get(&trainer->queue_names, name, &number, err),
                         "trainer");
}

enum tfos_status tfos_trainer_check(struct tfos_trainer *trainer, struct tfos_error *err)
{
    TFOS__TRY(tfos__fork_guard_check(&trainer->guard, "feed", TFOS__FORK_ADVICE_FEED, err));
    TFOS__TRY(tfos__trainer_channel_lock(trainer, err));
    enum tfos_status status = TFOS_OK;
    for (struct tfos__trainer_feed_queue *queue = trainer->queues; queue && status == TFOS_OK;
         queue = queue->next)
        if (queue->reader)
            status = tfos_feed_reader_check(queue->reader, err);
    tfos__trainer_channel_unlock(trainer);
    return status;
}

enum tfos_status tfos_trainer_open_feed(struct tfos_trainer *trainer, const char *name,
                                        struct tfos_feed_reader **out, struct tfos_error *err)
{
    TFOS__TRY(tfos_trainer_check(trainer, err));
    TFOS__TRY(check_queue(trainer, name, err));
    TFOS__TRY(tfos__trainer_channel_lock(trainer, err));
    struct tfos__trainer_feed_queue *queue = tfos__trainer_channel_get_queue(trainer, name);
    enum tfos_status status =
        queue ? request_feed(trainer, queue, err) : tfos__no_memory(err, "trainer", "a queue");
    if (status == TFOS_OK)
        status = await_feed(trainer, queue, err);
    if (status == TFOS_OK)
        *out = queue->reader;
    tfos__trainer_channel_unlock(trainer);
    return status;
}

// ---- descriptions

/// A feed and the queue that it is of; 0: any.
struct feed {
    const struct tfos__trainer_feed_queue *queue;
    int64_t number;
};

/// What is known of a feed; NULL: nothing. The newest counts.
static const struct tfos__trainer_description *find_description(const struct feed *feed)
{
    for (int i = 0; i < feed->queue->description_count; i++) {
        const struct tfos__trainer_description *description = &feed->queue->descriptions[i];
        if (feed->number == 0 ||
            (feed->number >= description->first_feed &&
             (description->last_feed == 0 || feed->number <= description->last_feed)))
            return description;
    }
    return NULL;
}

static bool is_described(const void *feed)
{
    return find_description(feed) != NULL;
}

/// A copy of what is known of feed `number` of the queue; AGAIN at the deadline.
static enum tfos_status await_schema(struct tfos_trainer *trainer, const char *name, int64_t number,
                                     struct tfos__wait *wait, char **out, struct tfos_error *err)
{
    TFOS__TRY(check_queue(trainer, name, err));
    TFOS__TRY(tfos__trainer_channel_lock(trainer, err));
    struct feed feed = {tfos__trainer_channel_get_queue(trainer, name), number};
    enum tfos_status status =
        feed.queue ? tfos__trainer_channel_await(trainer, is_described, &feed, wait, err)
                   : tfos__no_memory(err, "trainer", "a queue");
    if (status == TFOS_OK) {
        char *copy = tfos__strdup(find_description(&feed)->schema);
        if (copy)
            *out = copy;
        else
            status = tfos__no_memory(err, "trainer", "a schema");
    }
    tfos__trainer_channel_unlock(trainer);
    return status;
}

enum tfos_status tfos_trainer_await_description(struct tfos_trainer *trainer, const char *queue,
                                                const struct tfos_wait *caller, char **schema_json,
                                                struct tfos_error *err)
{
    struct tfos__wait wait = tfos__wait_begin(caller, DESCRIPTION_TIMEOUT_MS);
    enum tfos_status status = await_schema(trainer, queue, 0, &wait, schema_json, err);
    if (status != TFOS_AGAIN)
        return status;
    return tfos__fail(err, TFOS_TIMEOUT,
                      "trainer: the driver has not said what the rows of queue \"%s\" look like",
                      queue);
}

enum tfos_status tfos_trainer_get_schema(struct tfos_trainer *trainer, const char *queue,
                                         int64_t feed, int64_t timeout_ms,
                                         struct ArrowSchema *schema, struct tfos_error *err)
{
    char *text;
    enum tfos_status status =
        await_schema(trainer, queue, feed, TFOS__UNTIL(tfos__deadline(timeout_ms)), &text, err);
    if (status != TFOS_OK)
        return status;
    if (strcmp(text, "null") == 0)
        *schema = (struct ArrowSchema){0};
    else
        status = tfos_spark_schema_parse(text, schema, err);
    tfos__free(text);
    return status;
}

bool tfos_trainer_is_repeat(struct tfos_trainer *trainer, const char *queue, int64_t feed)
{
    if (check_queue(trainer, queue, NULL) < 0 || tfos__trainer_channel_lock(trainer, NULL) < 0)
        return false;
    struct feed found = {tfos__trainer_channel_get_queue(trainer, queue), feed};
    const struct tfos__trainer_description *description =
        found.queue ? find_description(&found) : NULL;
    // One without an end is of a stream, whose feeds differ.
    bool is_repeat = description && description->last_feed > 0 && feed > description->first_feed;
    tfos__trainer_channel_unlock(trainer);
    return is_repeat;
}

// ---- agreement

/// The TIMEOUT of an agreement. The driver knows which values are missing.
static enum tfos_status fail_agreement(const struct tfos__trainer_agreement *agreement,
                                       int64_t timeout_ms, struct tfos_error *err)
{
    double waited_s = (double)timeout_ms / 1000.0;
    if (!agreement->missing)
        return tfos__fail(err, TFOS_TIMEOUT,
                          "trainer: agreement \"%s\": not all gave a value within %.10g s, and the "
                          "driver does not answer who is missing",
                          agreement->name, waited_s);
    return tfos__fail(err, TFOS_TIMEOUT,
                      "trainer: agreement \"%s\": no value within %.10g s from %s. Each chief, "
                      "master and worker must ask for it under this name: see in the output of "
                      "these what they do instead, or raise the timeout if they only need longer",
                      agreement->name, waited_s, agreement->missing);
}

static bool is_decided(const void *context)
{
    const struct tfos__trainer_agreement *agreement = context;
    return agreement->values || agreement->refusal || agreement->missing;
}

/// Sends the value and waits for the answer, which is in `agreement` then. With the lock held.
static enum tfos_status await_agreement(struct tfos_trainer *trainer,
                                        struct tfos__trainer_agreement *agreement, json_t *value,
                                        bool is_given_only, const struct tfos_wait *caller,
                                        struct tfos_error *err)
{
    int64_t timeout_ms = caller && caller->timeout_ms > 0 ? caller->timeout_ms : AGREE_TIMEOUT_MS;
    struct tfos__wait wait = tfos__wait_begin(caller, AGREE_TIMEOUT_MS);
    TFOS__TRY(tfos__trainer_channel_send(
        trainer,
        json_pack("{s:s, s:s, s:O}", "type", "agree", "name", agreement->name, "value", value),
        err));
    if (is_given_only)
        return TFOS_OK;
    enum tfos_status status =
        tfos__trainer_channel_await(trainer, is_decided, agreement, &wait, err);
    if (status == TFOS_AGAIN) {
        TFOS__TRY(tfos__trainer_channel_send(
            trainer, json_pack("{s:s, s:s}", "type", "pending", "name", agreement->name), err));
        wait.deadline = tfos__deadline(MISSING_TIMEOUT_MS);
        status = tfos__trainer_channel_await(trainer, is_decided, agreement, &wait, err);
    }
    if (status < 0)
        return trainer->failure < 0
                   ? status
                   : tfos__fail_in(err, status, "trainer: agreement \"%s\"", agreement->name);
    if (agreement->values)
        return TFOS_OK;
    if (agreement->refusal)
        return tfos__fail(err, TFOS_CLOSED, "trainer: agreement \"%s\": %s", agreement->name,
                          agreement->refusal);
    return fail_agreement(agreement, timeout_ms, err);
}

/// The value, or NULL after the error was written (INVALID).
static json_t *parse_value(const char *text, struct tfos_error *err)
{
    json_error_t cause;
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &cause);
    if (!value)
        tfos__fail(err, TFOS_INVALID, "trainer: a value is no JSON: %s at byte %d", cause.text,
                   cause.position);
    return value;
}

enum tfos_status tfos_trainer_agree(struct tfos_trainer *trainer, const char *name,
                                    const char *value_json, const struct tfos_wait *wait,
                                    char **values_json, struct tfos_error *err)
{
    if (name[0] == '\0' || strlen(name) > NAME_LIMIT)
        return tfos__fail(err, TFOS_INVALID,
                          "trainer: the name of an agreement has 1 to %d bytes, not %zu",
                          NAME_LIMIT, strlen(name));
    json_t *value = parse_value(value_json, err);
    if (!value)
        return TFOS_INVALID;
    struct tfos__trainer_agreement agreement = {.name = name};
    enum tfos_status status = tfos__trainer_channel_lock(trainer, err);
    if (status < 0)
        goto drop_value;
    if (tfos__trainer_channel_find_agreement(trainer, name)) {
        status = tfos__fail(
            err, TFOS_INVALID,
            "trainer: agreement \"%s\" is waited for by another thread; each name is used once",
            name);
    } else {
        agreement.next = trainer->agreements;
        trainer->agreements = &agreement;
        status = await_agreement(trainer, &agreement, value, !values_json, wait, err);
        struct tfos__trainer_agreement **place = &trainer->agreements;
        while (*place != &agreement)
            place = &(*place)->next;
        *place = agreement.next;
    }
    tfos__trainer_channel_unlock(trainer);
    if (status == TFOS_OK && values_json)
        *values_json = agreement.values;
    else
        tfos__free(agreement.values);
    tfos__free(agreement.refusal);
    tfos__free(agreement.missing);
drop_value:
    json_decref(value);
    return status;
}

// ---- reports

enum tfos_status tfos_trainer_report(struct tfos_trainer *trainer, const char *values_json,
                                     struct tfos_error *err)
{
    if (strlen(values_json) > REPORT_LIMIT)
        return tfos__fail(err, TFOS_INVALID, "trainer: a report has %d bytes at most, not %zu",
                          REPORT_LIMIT, strlen(values_json));
    json_t *values = parse_value(values_json, err);
    if (!values)
        return TFOS_INVALID;
    const char *key;
    json_t *value = NULL;
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
    return send_message(trainer, json_pack("{s:s, s:o}", "type", "report", "values", values), err);
}

enum tfos_status tfos_trainer_put_result(struct tfos_trainer *trainer, const char *text,
                                         struct tfos_error *err)
{
    size_t size = strlen(text);
    if (size > RESULT_LIMIT)
        return tfos__fail(err, TFOS_INVALID,
                          "trainer: a part of a result has %u bytes at most, not %zu", RESULT_LIMIT,
                          size);
    return send_message(trainer, json_pack("{s:s, s:s}", "type", "result", "text", text), err);
}

static bool is_port_released(const void *trainer)
{
    return ((const struct tfos_trainer *)trainer)->is_port_released;
}

enum tfos_status tfos_trainer_release_port(struct tfos_trainer *trainer, struct tfos_error *err)
{
    TFOS__TRY(tfos__trainer_channel_lock(trainer, err));
    enum tfos_status status =
        tfos__trainer_channel_send(trainer, json_pack("{s:s}", "type", "release_port"), err);
    if (status == TFOS_OK)
        status = tfos__trainer_channel_await(trainer, is_port_released, trainer,
                                             TFOS__UNTIL(tfos__deadline(RELEASE_TIMEOUT_MS)), err);
    tfos__trainer_channel_unlock(trainer);
    if (status == TFOS_AGAIN)
        return tfos__fail(err, TFOS_TIMEOUT,
                          "trainer: the node has not released the port within %d ms",
                          RELEASE_TIMEOUT_MS);
    return status;
}

enum tfos_status tfos_trainer_terminate(struct tfos_trainer *trainer, struct tfos_error *err)
{
    return send_message(trainer, json_pack("{s:s}", "type", "terminate"), err);
}

enum tfos_status tfos_trainer_fail(struct tfos_trainer *trainer, const char *message,
                                   struct tfos_error *err)
{
    // The last lines of a traceback have the reason.
    const char *tail = tfos__text_tail(message, REASON_SIZE);
    return send_message(
        trainer,
        json_pack("{s:s, s:o}", "type", "fail", "message", tfos__json_repaired(tail, strlen(tail))),
        err);
}
