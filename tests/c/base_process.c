// SPDX-License-Identifier: Apache-2.0
// Starting and watching real processes. The children are shells, which tell what they were given.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/socket.h"
#include "harness.h"

#define WAIT_MS 20000

static char *const environment[] = {"PATH=/usr/bin:/bin", "WORD=given", NULL};

// Runs a shell script with these options and gives all that it wrote and its wait status.
static int run_script(const char *script, struct tfos__spawn_options options, char *output,
                      size_t size)
{
    struct tfos_error err;
    int channel[2];
    pid_t pid = 0;
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    assert_int_equal(pipe2(channel, O_CLOEXEC), 0);
    options.argv = argv;
    options.envp = environment;
    options.stdin_fd = -1;
    options.stdout_fd = channel[1];
    options.stderr_fd = channel[1];
    assert_done(tfos__process_spawn(&options, &pid, &err));
    close(channel[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(channel[0], output + length, size - 1 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    close(channel[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_process_gets_what_was_named(void **state)
{
    (void)state;
    char output[512];
    struct tfos__spawn_options options = {.directory = "/usr"};
    int status = run_script("pwd; echo $WORD; echo \"${HOME-none}\"; wc -c; exit 3", options,
                            output, sizeof(output));
    assert_string_equal(output, "/usr\ngiven\nnone\n0\n");
    assert_int_equal(WEXITSTATUS(status), 3);
}

static void no_other_descriptor_gets_through(void **state)
{
    (void)state;
    char output[512];
    int leaky = dup(STDIN_FILENO); // not close-on-exec
    int high = fcntl(STDIN_FILENO, F_DUPFD, 300);
    assert_true(leaky >= 0 && high >= 300);
    int passed[2];
    assert_int_equal(pipe2(passed, O_CLOEXEC), 0);
    struct tfos__spawn_options options = {.inherited_fds = passed, .inherited_count = 2};
    run_script("for n in /proc/$$/fd/*; do [ ! -e $n ] || echo -n \"${n##*/} \"; done", options,
               output, sizeof(output));
    assert_string_equal(output, "0 1 2 3 4 ");
    close(leaky);
    close(high);
    close(passed[0]);
    close(passed[1]);
}

// A file of one line, open at exactly descriptor `at`.
static void open_marked(const char *text, int at)
{
    int pair[2];
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    assert_int_equal(write(pair[1], text, strlen(text)), strlen(text));
    close(pair[1]);
    if (pair[0] != at) {
        assert_int_equal(dup3(pair[0], at, O_CLOEXEC), at);
        close(pair[0]);
    }
}

static void descriptors_may_overlap_their_places(void **state)
{
    (void)state;
    char output[512];
    for (int fd = 20; fd < 24; fd++)
        assert_int_equal(fcntl(fd, F_GETFD), -1);
    // The places are 3, 4, 5, 6: what lies there now is moved out of the way for the time being.
    int saved[4];
    for (int i = 0; i < 4; i++)
        saved[i] = fcntl(3 + i, F_GETFD) >= 0 ? fcntl(3 + i, F_DUPFD_CLOEXEC, 60) : -1;
    open_marked("five\n", 5);
    open_marked("four\n", 4);
    open_marked("six\n", 6);
    open_marked("three\n", 3);
    int fds[] = {5, 3, 4, 6};
    struct tfos__spawn_options options = {.inherited_fds = fds, .inherited_count = 4};
    int64_t begin = tfos__now_ms();
    run_script("cat <&3; cat <&4; cat <&5; cat <&6", options, output, sizeof(output));
    assert_string_equal(output, "five\nthree\nfour\nsix\n");
    assert_true(tfos__now_ms() - begin < WAIT_MS);
    for (int i = 0; i < 4; i++) {
        close(3 + i);
        if (saved[i] >= 0) {
            dup3(saved[i], 3 + i, O_CLOEXEC);
            close(saved[i]);
        }
    }
}

static void one_descriptor_may_have_two_places(void **state)
{
    (void)state;
    char output[64];
    int pair[2];
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    assert_int_equal(write(pair[1], "a\nb\n", 4), 4);
    close(pair[1]);
    int fds[] = {pair[0], pair[0]};
    struct tfos__spawn_options options = {.inherited_fds = fds, .inherited_count = 2};
    run_script("read x <&3; read y <&4; echo $x$y", options, output, sizeof(output));
    assert_string_equal(output, "ab\n");
    close(pair[0]);
}

static void signals_are_as_new(void **state)
{
    (void)state;
    char output[512];
    sigset_t blocked;
    sigset_t old;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, &old);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    run_script("grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2",
               (struct tfos__spawn_options){0}, output, sizeof(output));
    unsigned long long child_blocked;
    unsigned long long child_ignored;
    assert_int_equal(sscanf(output, "%llx\n%llx", &child_blocked, &child_ignored), 2);
    assert_int_equal(child_blocked, 0);
    // glibc makes children ignore 32 and 33, which are its own.
    assert_int_equal(child_ignored & ~(3ull << 31), 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void a_session_of_its_own_is_asked_for(void **state)
{
    (void)state;
    char output[64];
    char expected[64];
    const char *script = "sed 's/.*) //' /proc/$$/stat | cut -d' ' -f4; echo $$";
    run_script(script, (struct tfos__spawn_options){.new_session = true}, output, sizeof(output));
    int session = 0;
    int pid = 0;
    assert_int_equal(sscanf(output, "%d\n%d", &session, &pid), 2);
    assert_int_equal(session, pid);
    run_script(script, (struct tfos__spawn_options){0}, output, sizeof(output));
    snprintf(expected, sizeof(expected), "%d\n", (int)getsid(0));
    assert_memory_equal(output, expected, strlen(expected));
}

static void what_cannot_be_started_is_named(void **state)
{
    (void)state;
    struct tfos_error err;
    pid_t pid = -7;
    char *argv[] = {"tfos-no-such-program", NULL};
    struct tfos__spawn_options options = {
        .argv = argv, .envp = environment, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    assert_int_equal(tfos__process_spawn(&options, &pid, &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "cannot start tfos-no-such-program"));
    argv[0] = "/etc/passwd";
    assert_int_equal(tfos__process_spawn(&options, &pid, &err), TFOS_IO);
    assert_non_null(strstr(err.message, "/etc/passwd"));
    argv[0] = "sh";
    options.directory = "/no/such/folder";
    assert_int_equal(tfos__process_spawn(&options, &pid, &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "/no/such/folder"));
    options.directory = NULL;
    int closed = 999;
    options.inherited_fds = &closed;
    options.inherited_count = 1;
    assert_int_equal(tfos__process_spawn(&options, &pid, &err), TFOS_IO);
    assert_non_null(strstr(err.message, "descriptor 999"));
    options.inherited_count = 0;
    tfos__memory_fail_at(1);
    assert_int_equal(tfos__process_spawn(&options, &pid, &err), TFOS_NO_MEMORY);
    assert_int_equal(pid, -7);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // nothing was left behind
}

static void a_watched_process_tells_its_end(void **state)
{
    (void)state;
    struct tfos_error err;
    pid_t pid;
    int pidfd;
    char *argv[] = {"sleep", "600", NULL};
    struct tfos__spawn_options options = {
        .argv = argv, .envp = environment, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    assert_done(tfos__process_spawn(&options, &pid, &err));
    assert_done(tfos__process_watch(pid, &pidfd, &err));
    assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(tfos__socket_wait(pidfd, POLLIN, tfos__deadline(20), &err), TFOS_TIMEOUT);
    kill(pid, SIGKILL);
    assert_done(tfos__socket_wait(pidfd, POLLIN, tfos__deadline(WAIT_MS), &err));
    int status;
    char text[64];
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_string_equal(tfos__process_describe(status, text), "signal 9 (Killed)");
    close(pidfd);
    pidfd = -1;
    assert_int_equal(tfos__process_watch(pid, &pidfd, &err), TFOS_NOT_FOUND);
    assert_int_equal(tfos__process_watch(0, &pidfd, &err), TFOS_INVALID);
    assert_int_equal(pidfd, -1);
}

static void ends_are_described(void **state)
{
    (void)state;
    char text[64];
    char output[8];
    struct tfos__spawn_options options = {0};
    int status = run_script("exit 42", options, output, sizeof(output));
    assert_string_equal(tfos__process_describe(status, text), "exit status 42");
    status = run_script("kill -SEGV $$", options, output, sizeof(output));
    assert_string_equal(tfos__process_describe(status, text), "signal 11 (Segmentation fault)");
}

// Puts a shell that is called `name` between this process and a deeper one; what find_executor()
// makes of the deepest. `chain` is a script in which $SHELL_AS is a link to the shell under another
// name.
struct chain {
    pid_t outer; // the first process below this one
    pid_t inner; // the deepest
};

static struct chain start_chain(const char *script, int *input)
{
    struct tfos_error err;
    struct chain chain;
    int in[2];
    int out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    struct tfos__spawn_options options = {
        .argv = argv, .envp = environment, .stdin_fd = in[0], .stdout_fd = out[1], .stderr_fd = -1};
    assert_done(tfos__process_spawn(&options, &chain.outer, &err));
    close(in[0]);
    close(out[1]);
    char text[32];
    size_t length = 0;
    while (length < sizeof(text) - 1 && read(out[0], text + length, 1) == 1 && text[length] != '\n')
        length++;
    text[length] = '\0';
    close(out[0]);
    chain.inner = (pid_t)strtol(text, NULL, 10);
    assert_true(chain.inner > 1);
    *input = in[1];
    return chain;
}

static void end_chain(const struct chain *chain, int input)
{
    close(input); // every `cat` below reads to its end
    assert_int_equal(waitpid(chain->outer, NULL, 0), chain->outer);
}

static void the_nearest_java_is_the_executor(void **state)
{
    (void)state;
    int input;
    struct chain chain = start_chain("echo -n java > /proc/$$/comm;"
                                     "sh -c 'echo $$; exec cat'; :",
                                     &input);
    assert_int_equal(tfos__process_find_executor(chain.inner), chain.outer);
    assert_int_equal(tfos__process_find_executor(chain.outer), chain.outer);
    end_chain(&chain, input);
}

static void strange_names_are_read_past(void **state)
{
    (void)state;
    int input;
    struct chain chain = start_chain("echo -n java > /proc/$$/comm;"
                                     "sh -c 'echo -n \"a) S 1 (b\" > /proc/$$/comm;"
                                     "echo $$; read x'; :",
                                     &input);
    assert_int_equal(tfos__process_find_executor(chain.inner), chain.outer);
    end_chain(&chain, input);
}

static void without_java_it_is_above_the_outermost_pyspark(void **state)
{
    (void)state;
    int input;
    struct chain chain =
        start_chain("exec 9<&0; bash -c 'exec -a python3 sh -c \""
                    "sh -c \\\"echo \\\\\\$\\\\\\$; exec cat\\\"; :\" -m pyspark.daemon' <&9; :",
                    &input);
    assert_int_equal(tfos__process_find_executor(chain.inner), chain.outer);
    end_chain(&chain, input);
}

static void without_either_it_is_the_parent(void **state)
{
    (void)state;
    int input;
    struct chain chain = start_chain("sh -c 'echo $$; exec cat'; :", &input);
    assert_int_equal(tfos__process_find_executor(chain.inner), chain.outer);
    end_chain(&chain, input);
    assert_int_equal(tfos__process_find_executor(chain.inner), 0);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_process_gets_what_was_named),
    cmocka_unit_test(no_other_descriptor_gets_through),
    cmocka_unit_test(descriptors_may_overlap_their_places),
    cmocka_unit_test(one_descriptor_may_have_two_places),
    cmocka_unit_test(signals_are_as_new),
    cmocka_unit_test(a_session_of_its_own_is_asked_for),
    cmocka_unit_test(what_cannot_be_started_is_named),
    cmocka_unit_test(a_watched_process_tells_its_end),
    cmocka_unit_test(ends_are_described),
    cmocka_unit_test(the_nearest_java_is_the_executor),
    cmocka_unit_test(strange_names_are_read_past),
    cmocka_unit_test(without_java_it_is_above_the_outermost_pyspark),
    cmocka_unit_test(without_either_it_is_the_parent),
};

TEST_MAIN(cases)
