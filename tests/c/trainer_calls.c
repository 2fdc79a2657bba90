// SPDX-License-Identifier: Apache-2.0
/// The trainer's side of its link, against a node that the case itself plays on the other end of
/// the socket.
#include <pthread.h>

#include "base/channel.h"
#include "nodes.h"

#define FOR(ms) (&(struct tfos_wait){.timeout_ms = (ms)})

struct pair {
    struct tfos__channel *node;
    struct tfos_trainer *trainer;
};

static void send_node(struct pair *pair, json_t *message)
{
    struct tfos_error err;
    assert_done(
        tfos__channel_send(pair->node, message, NULL, 0, tfos__deadline(PATIENCE_MS), &err));
}

/// The trainer's next message, of which `type` is expected; the caller drops it.
static json_t *receive_node(struct pair *pair, const char *type)
{
    struct tfos_error err;
    json_t *message;
    assert_done(
        tfos__channel_receive(pair->node, &message, NULL, NULL, tfos__deadline(PATIENCE_MS), &err));
    assert_string_equal(json_string_value(json_object_get(message, "type")), type);
    return message;
}

/// Sends the context, and then `more` (taken over; NULL: nothing), before the trainer reads. `key`:
/// of groups; NULL: none.
static void open_pair_with(struct pair *pair, bool is_fed, json_t *more, const char *key)
{
    struct tfos_error err;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_done(tfos__channel_open(fds[0], TFOS__CHANNEL_UNIX, NULL, "trainer", &pair->node, &err));
    send_node(pair, json_pack("{s:s, s:s, s:i, s:i, s:b, s:{s:[s, s], s:[s]}, s:s*}", "type",
                              "context", "job_name", "worker", "executor_id", 7, "task_index", 0,
                              "fed", (int)is_fed, "cluster_spec", "worker", "a:1", "b:2", "ps",
                              "c:3", "collective_key", key));
    if (more)
        send_node(pair, more);
    assert_done(tfos_trainer_open(fds[1], &pair->trainer, &err));
}

static void open_pair(struct pair *pair, bool is_fed)
{
    open_pair_with(pair, is_fed, NULL, NULL);
}

static void close_pair(struct pair *pair)
{
    tfos_trainer_close(pair->trainer);
    tfos__channel_close(pair->node);
}

static void s46_a_group_needs_the_key_of_a_node(void **state)
{
    (void)state;
    const struct tfos_collective_options options = {.name = "workers"}, unnamed = {0};
    struct tfos_collective *group = NULL;
    struct tfos_error err;
    struct pair pair;
    open_pair_with(&pair, false, NULL, NULL);
    assert_int_equal(tfos_trainer_open_collective(pair.trainer, &options, NULL, &group, &err),
                     TFOS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no key for groups"));
    assert_int_equal(tfos_trainer_open_collective(pair.trainer, &unnamed, NULL, &group, &err),
                     TFOS_INVALID);
    assert_null(group);
    close_pair(&pair);
}

struct opening {
    struct tfos_trainer *trainer;
    struct tfos_collective *group;
    enum tfos_status status;
};

static void *open_group(void *argument)
{
    struct opening *opening = argument;
    const struct tfos_collective_options options = {.name = "workers"};
    opening->status = tfos_trainer_open_collective(opening->trainer, &options, FOR(PATIENCE_MS),
                                                   &opening->group, NULL);
    return NULL;
}

static void s46_the_node_is_told_of_the_steps_of_a_group(void **state)
{
    (void)state;
    struct pair pair;
    pthread_t thread;
    char key[65];
    memset(key, 'a', 64);
    key[64] = '\0';
    open_pair_with(&pair, false, NULL, key);
    struct opening opening = {.trainer = pair.trainer};
    assert_int_equal(pthread_create(&thread, NULL, open_group, &opening), 0);
    json_t *message = receive_node(&pair, "agree");
    send_node(&pair, json_pack("{s:s, s:O, s:[O]}", "type", "agreed", "name",
                               json_object_get(message, "name"), "values",
                               json_object_get(message, "value")));
    json_decref(message);
    pthread_join(thread, NULL);
    assert_int_equal(opening.status, TFOS_OK);
    tfos_collective_mark_step(opening.group, TFOS_COLLECTIVE_STEP_GRADIENTS);
    message = receive_node(&pair, "steps");
    const json_t *figures = json_object_get(message, "figures");
    assert_int_equal(json_integer_value(json_object_get(figures, "count")), 1);
    assert_int_equal(json_integer_value(json_object_get(figures, "data_us")), -1);
    assert_true(json_integer_value(json_object_get(figures, "at_us")) > 0);
    json_decref(message);
    tfos_collective_close(opening.group);
    close_pair(&pair);
}

enum { THREADS = 8, ROUNDS = 50 };

struct agreeing {
    struct tfos_trainer *trainer;
    int number;
    int failures;
};

static void *agree_often(void *argument)
{
    struct agreeing *agreeing = argument;
    for (int round = 0; round < ROUNDS; round++) {
        char name[64], value[32], *values;
        snprintf(name, sizeof(name), "thread %d round %d", agreeing->number, round);
        snprintf(value, sizeof(value), "%d", agreeing->number * 1000 + round);
        struct tfos_error err;
        if (tfos_trainer_agree(agreeing->trainer, name, value, FOR(PATIENCE_MS), &values, &err) !=
            TFOS_OK) {
            agreeing->failures++;
            continue;
        }
        char expected[64];
        snprintf(expected, sizeof(expected), "[%s,null]", value);
        agreeing->failures += strcmp(values, expected) != 0;
        tfos_free(values);
    }
    return NULL;
}

static void many_threads_agree_at_once(void **state)
{
    (void)state;
    struct pair pair;
    pthread_t threads[THREADS];
    struct agreeing agreeings[THREADS];
    open_pair(&pair, false);
    for (int i = 0; i < THREADS; i++) {
        agreeings[i] = (struct agreeing){.trainer = pair.trainer, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, agree_often, &agreeings[i]), 0);
    }
    for (int i = 0; i < THREADS * ROUNDS; i++) {
        json_t *message = receive_node(&pair, "agree");
        send_node(&pair, json_pack("{s:s, s:O, s:[O, n]}", "type", "agreed", "name",
                                   json_object_get(message, "name"), "values",
                                   json_object_get(message, "value")));
        json_decref(message);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(agreeings[i].failures, 0);
    }
    close_pair(&pair);
}

static void *agree_once(void *argument)
{
    struct agreeing *agreeing = argument;
    char *values;
    struct tfos_error err;
    enum tfos_status status =
        tfos_trainer_agree(agreeing->trainer, "end", "true", FOR(PATIENCE_MS), &values, &err);
    agreeing->failures = status == TFOS_CLOSED && strstr(err.message, "worker:1 has ended") ? 0 : 1;
    return NULL;
}

static void a_member_that_has_ended_closes_the_agreement(void **state)
{
    (void)state;
    struct pair pair;
    pthread_t thread;
    open_pair(&pair, false);
    struct agreeing agreeing = {.trainer = pair.trainer};
    assert_int_equal(pthread_create(&thread, NULL, agree_once, &agreeing), 0);
    json_decref(receive_node(&pair, "agree"));
    // The same name is refused while it is waited for.
    struct tfos_error err;
    char *values;
    assert_int_equal(tfos_trainer_agree(pair.trainer, "end", "true", FOR(100), &values, &err),
                     TFOS_INVALID);
    send_node(&pair, json_pack("{s:s, s:s, s:s}", "type", "disagreed", "name", "end", "message",
                               "worker:1 has ended"));
    pthread_join(thread, NULL);
    assert_int_equal(agreeing.failures, 0);
    close_pair(&pair);
}

static void *agree_in_vain(void *argument)
{
    struct agreeing *agreeing = argument;
    struct tfos_error err;
    char *values;
    enum tfos_status status =
        tfos_trainer_agree(agreeing->trainer, "step", "1", FOR(50), &values, &err);
    bool is_told = strstr(err.message, "\"step\": no value within 0.05 s from worker:1 on host b.");
    agreeing->failures = status == TFOS_TIMEOUT && is_told ? 0 : 1;
    return NULL;
}

static void an_agreement_times_out_by_who_is_missing(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    pthread_t thread;
    open_pair(&pair, false);
    struct agreeing agreeing = {.trainer = pair.trainer};
    assert_int_equal(pthread_create(&thread, NULL, agree_in_vain, &agreeing), 0);
    json_decref(receive_node(&pair, "agree"));
    json_decref(receive_node(&pair, "pending"));
    send_node(&pair, json_pack("{s:s, s:s, s:s}", "type", "pending", "name", "step", "nodes",
                               "worker:1 on host b"));
    pthread_join(thread, NULL);
    assert_int_equal(agreeing.failures, 0);
    // An answer that comes too late is for nobody, and the link continues.
    send_node(&pair,
              json_pack("{s:s, s:s, s:[i, i]}", "type", "agreed", "name", "step", "values", 1, 2));
    assert_done(tfos_trainer_terminate(pair.trainer, &err));
    json_decref(receive_node(&pair, "terminate"));
    close_pair(&pair);
}

static void an_agreement_times_out_without_the_driver(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    char *values;
    open_pair(&pair, false);
    assert_int_equal(tfos_trainer_agree(pair.trainer, "step", "1", FOR(50), &values, &err),
                     TFOS_TIMEOUT);
    assert_non_null(strstr(err.message, "the driver does not answer"));
    close_pair(&pair);
}

/// Interrupts when it is asked for the second time; until then the trainer is free for others.
static bool interrupt(void *context)
{
    struct agreeing *agreeing = context;
    struct tfos_error err;
    return tfos_trainer_report(agreeing->trainer, "{}", &err) != TFOS_OK || ++agreeing->number == 2;
}

static void an_agreement_can_be_interrupted(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    char *values;
    open_pair(&pair, false);
    struct agreeing agreeing = {.trainer = pair.trainer};
    struct tfos_wait wait = {.is_interrupted = interrupt, .context = &agreeing};
    int64_t begin = tfos__now_ms();
    assert_int_equal(tfos_trainer_agree(pair.trainer, "step", "1", &wait, &values, &err),
                     TFOS_CLOSED);
    assert_true(tfos__now_ms() - begin < PATIENCE_MS);
    assert_int_equal(agreeing.number, 2);
    assert_string_equal(err.message, "trainer: agreement \"step\": the wait was interrupted");
    assert_done(tfos_trainer_terminate(pair.trainer, &err));
    close_pair(&pair);
}

static void *agree_as_member(void *argument)
{
    struct tfos_error err;
    char *values;
    return tfos_trainer_member_agree(argument, "wait", "1", &values, &err) == TFOS_CLOSED ? argument
                                                                                          : NULL;
}

static void a_member_outlives_its_trainer(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    struct tfos_trainer_member *members[2];
    pthread_t thread;
    void *result;
    char *values;
    open_pair(&pair, false);
    for (int i = 0; i < 2; i++)
        assert_done(tfos_trainer_member_open(pair.trainer, PATIENCE_MS, &members[i], &err));
    assert_string_equal(tfos_trainer_member_name(members[0]), "files/1");
    assert_string_equal(tfos_trainer_member_name(members[1]), "files/2");
    // What is only given waits for no answer, and an answer that comes is nobody's.
    assert_done(tfos_trainer_member_agree(members[0], "given", "7", NULL, &err));
    json_t *message = receive_node(&pair, "agree");
    assert_int_equal(json_integer_value(json_object_get(message, "value")), 7);
    json_decref(message);
    send_node(&pair,
              json_pack("{s:s, s:s, s:[i]}", "type", "agreed", "name", "given", "values", 7));
    assert_int_equal(pthread_create(&thread, NULL, agree_as_member, members[0]), 0);
    json_decref(receive_node(&pair, "agree"));
    tfos_trainer_close(pair.trainer);
    pair.trainer = NULL;
    pthread_join(thread, &result);
    assert_non_null(result);
    assert_true(tfos_trainer_member_is_interrupted(members[1]));
    assert_int_equal(tfos_trainer_member_agree(members[1], "late", "1", &values, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "the link to the node was closed"));
    for (int i = 0; i < 2; i++)
        tfos_trainer_member_close(members[i]);
    close_pair(&pair);
}

static void the_node_s_end_ends_every_wait(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    struct tfos_feed_reader *reader;
    char *values;
    open_pair(&pair, true);
    tfos__channel_close(pair.node);
    pair.node = NULL;
    assert_int_equal(tfos_trainer_agree(pair.trainer, "step", "1", FOR(PATIENCE_MS), &values, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "node"));
    assert_int_equal(tfos_trainer_open_feed(pair.trainer, "input", &reader, &err), TFOS_CLOSED);
    assert_int_equal(tfos_trainer_report(pair.trainer, "{}", &err), TFOS_CLOSED);
    close_pair(&pair);
}

static void *open_refused_feed(void *argument)
{
    struct agreeing *agreeing = argument;
    struct tfos_feed_reader *reader;
    struct tfos_error err;
    enum tfos_status status = tfos_trainer_open_feed(agreeing->trainer, "input", &reader, &err);
    agreeing->failures = status == TFOS_NOT_FOUND && strstr(err.message, "no such queue") ? 0 : 1;
    return NULL;
}

static void a_queue_that_is_refused_is_not_found(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    struct tfos_feed_reader *reader;
    open_pair(&pair, true);
    struct agreeing agreeing = {.trainer = pair.trainer};
    for (int i = 0; i < 2; i++) { // it may be asked for again
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, open_refused_feed, &agreeing), 0);
        json_t *message = receive_node(&pair, "open_feed");
        assert_string_equal(json_string_value(json_object_get(message, "queue")), "input");
        json_decref(message);
        send_node(&pair, json_pack("{s:s, s:s, s:s}", "type", "refused", "queue", "input",
                                   "message", "no such queue"));
        pthread_join(thread, NULL);
        assert_int_equal(agreeing.failures, 0);
    }
    close_pair(&pair);

    open_pair(&pair, false);
    assert_int_equal(tfos_trainer_open_feed(pair.trainer, "input", &reader, &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "InputMode.SPARK"));
    close_pair(&pair);
}

static void what_comes_with_the_context_is_heard(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    char *schema;
    open_pair_with(&pair, true,
                   json_pack("{s:s, s:s, s:s}", "type", "describe", "queue", "input", "schema",
                             "{\"type\":\"struct\"}"),
                   NULL);
    assert_done(
        tfos_trainer_await_description(pair.trainer, "input", FOR(PATIENCE_MS), &schema, &err));
    assert_string_equal(schema, "{\"type\":\"struct\"}");
    tfos_free(schema);
    close_pair(&pair);
}

static void say_schema(struct pair *pair, const char *schema, int first_feed, int last_feed)
{
    send_node(pair, json_pack("{s:s, s:s, s:s, s:i, s:i}", "type", "describe", "queue", "input",
                              "schema", schema, "first_feed", first_feed, "last_feed", last_feed));
}

static void each_feed_has_its_schema(void **state)
{
    static const char of_numbers[] = "{\"type\": \"struct\", \"fields\": [{\"name\": \"n\", "
                                     "\"type\": \"long\", \"nullable\": true}]}";
    struct pair pair;
    struct ArrowSchema schema;
    struct tfos_error err;

    (void)state;
    open_pair(&pair, true);
    assert_int_equal(tfos_trainer_get_schema(pair.trainer, "input", 1, 0, &schema, &err),
                     TFOS_AGAIN);
    assert_int_equal(tfos_trainer_get_schema(pair.trainer, "output", 1, 0, &schema, &err),
                     TFOS_NOT_FOUND);
    for (int i = 0; i < 20; i++) // more than are kept
        say_schema(&pair, "{}", 1, 1);
    say_schema(&pair, of_numbers, 2, 3);
    say_schema(&pair, "null", 4, 4);
    say_schema(&pair, "[1]", 5, 0);
    assert_int_equal(
        tfos_trainer_get_schema(pair.trainer, "input", 1000, PATIENCE_MS, &schema, &err),
        TFOS_CORRUPT);
    for (int feed = 2; feed < 4; feed++) {
        assert_done(tfos_trainer_get_schema(pair.trainer, "input", feed, 0, &schema, &err));
        assert_int_equal(schema.n_children, 1);
        assert_string_equal(schema.children[0]->name, "n");
        assert_string_equal(schema.children[0]->format, "l");
        schema.release(&schema);
    }
    assert_done(tfos_trainer_get_schema(pair.trainer, "input", 4, 0, &schema, &err));
    assert_null(schema.release);
    close_pair(&pair);
}

static void what_is_said_arrives_checked(void **state)
{
    (void)state;
    struct pair pair;
    struct tfos_error err;
    char *values;
    open_pair(&pair, false);
    assert_int_equal(tfos_trainer_report(pair.trainer, "[1]", &err), TFOS_INVALID);
    assert_int_equal(tfos_trainer_report(pair.trainer, "{\"loss\": \"low\"}", &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "loss"));
    assert_int_equal(tfos_trainer_report(pair.trainer, "{", &err), TFOS_INVALID);
    assert_int_equal(tfos_trainer_agree(pair.trainer, "", "1", FOR(1), &values, &err),
                     TFOS_INVALID);
    assert_int_equal(tfos_trainer_agree(pair.trainer, "x", "no json", FOR(1), &values, &err),
                     TFOS_INVALID);
    assert_done(tfos_trainer_report(pair.trainer, "{\"loss\": 0.25}", &err));
    json_t *message = receive_node(&pair, "report");
    assert_true(json_real_value(json_object_get(json_object_get(message, "values"), "loss")) ==
                0.25);
    json_decref(message);
    assert_done(tfos_trainer_put_result(pair.trainer, "7", &err));
    message = receive_node(&pair, "result");
    assert_string_equal(json_string_value(json_object_get(message, "text")), "7");
    json_decref(message);
    enum { RESULT_SIZE = (1 << 20) + 1 };
    char *result = malloc(RESULT_SIZE + 1);
    memset(result, 'x', RESULT_SIZE);
    result[RESULT_SIZE] = '\0';
    assert_int_equal(tfos_trainer_put_result(pair.trainer, result, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "not 1048577"));
    free(result);
    // Of a long reason the end is kept.
    enum { SIZE = 100000 };
    char *reason = malloc(SIZE + 1);
    memset(reason, 'x', SIZE);
    memcpy(reason + SIZE - 5, "cause", 5);
    reason[SIZE] = '\0';
    assert_done(tfos_trainer_fail(pair.trainer, reason, &err));
    free(reason);
    message = receive_node(&pair, "fail");
    const char *text = json_string_value(json_object_get(message, "message"));
    assert_true(strlen(text) < 20000);
    assert_string_equal(text + strlen(text) - 5, "cause");
    json_decref(message);
    close_pair(&pair);
}

static void check_forked_process(bool is_reading)
{
    struct pair pair;
    struct tfos_error err;
    open_pair(&pair, true);
    pid_t child = fork();
    if (child == 0) {
        struct tfos_feed_reader *reader;
        bool is_refused = tfos_trainer_terminate(pair.trainer, &err) == TFOS_INVALID &&
                          (!is_reading || tfos_trainer_open_feed(pair.trainer, "input", &reader,
                                                                 &err) == TFOS_INVALID);
        tfos_trainer_close(pair.trainer); // does not hang for want of the thread
        _exit(is_refused ? 0 : 1);
    }
    int wait_status;
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_int_equal(wait_status, 0);
    assert_int_equal(tfos_trainer_check(pair.trainer, &err), is_reading ? TFOS_INVALID : TFOS_OK);
    close_pair(&pair);
}

static void a_forked_process_is_told_that_it_has_no_link(void **state)
{
    (void)state;
    check_forked_process(false);
}

/// That it has failed to is known to the trainer.
static void s73_a_forked_process_opens_no_feed(void **state)
{
    (void)state;
    check_forked_process(true);
}

static void opening_checks_its_descriptor(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos_trainer *trainer;
    int fd_count = count_fds();
    assert_int_equal(tfos_trainer_open(999, &trainer, &err), TFOS_INVALID);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    close(fds[0]);
    assert_int_equal(tfos_trainer_open(fds[1], &trainer, &err), TFOS_CLOSED);
    assert_int_equal(count_fds(), fd_count);
}

static enum tfos_status open_under(pid_t node_pid, struct tfos_error *found)
{
    int fds[2];
    struct pair pair = {0};
    struct tfos_error err = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_done(tfos__channel_open(fds[0], TFOS__CHANNEL_UNIX, NULL, "trainer", &pair.node, &err));
    send_node(&pair, json_pack("{s:s, s:i}", "type", "context", "node_pid", (int)node_pid));
    enum tfos_status status = tfos_trainer_open(fds[1], &pair.trainer, &err);
    close_pair(&pair);
    *found = err;
    return status;
}

/// A node that was killed before its trainer could tie itself to it has left its messages.
static void a_node_that_has_gone_is_noticed(void **state)
{
    (void)state;
    struct tfos_error err;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)gone, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(open_under(gone, &err), TFOS_CLOSED); // not yet reaped
    assert_non_null(strstr(err.message, "the node has gone"));
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    assert_int_equal(open_under(gone, &err), TFOS_CLOSED);
    assert_int_equal(open_under(getppid(), &err), TFOS_OK);
    assert_int_equal(open_under(getpid(), &err),
                     TFOS_OK); // a program between the two is the parent
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s46_a_group_needs_the_key_of_a_node),
    cmocka_unit_test(s46_the_node_is_told_of_the_steps_of_a_group),
    cmocka_unit_test(many_threads_agree_at_once),
    cmocka_unit_test(a_member_that_has_ended_closes_the_agreement),
    cmocka_unit_test(an_agreement_times_out_by_who_is_missing),
    cmocka_unit_test(an_agreement_times_out_without_the_driver),
    cmocka_unit_test(an_agreement_can_be_interrupted),
    cmocka_unit_test(a_member_outlives_its_trainer),
    cmocka_unit_test(the_node_s_end_ends_every_wait),
    cmocka_unit_test(a_queue_that_is_refused_is_not_found),
    cmocka_unit_test(what_comes_with_the_context_is_heard),
    cmocka_unit_test(each_feed_has_its_schema),
    cmocka_unit_test(what_is_said_arrives_checked),
    cmocka_unit_test(a_forked_process_is_told_that_it_has_no_link),
    cmocka_unit_test(s73_a_forked_process_opens_no_feed),
    cmocka_unit_test(opening_checks_its_descriptor),
    cmocka_unit_test(a_node_that_has_gone_is_noticed),
};

TEST_MAIN(cases)
