// SPDX-License-Identifier: Apache-2.0
// Streams of files: nobody sees a part, and what fails says why.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tfos/stream.h>
#include <unistd.h>

#include "harness.h"

struct place {
    char folder[64];
    char path[96];
};

static struct place make_place(void)
{
    struct place place = {.folder = "/tmp/tfos-fs-XXXXXX"};
    assert_non_null(mkdtemp(place.folder));
    snprintf(place.path, sizeof(place.path), "%s/data", place.folder);
    return place;
}

static int entry_count(const char *folder)
{
    DIR *entries = opendir(folder);
    int count = -2; // "." and ".."
    assert_non_null(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

static void remove_place(struct place *place)
{
    unlink(place->path);
    assert_int_equal(rmdir(place->folder), 0); // nothing else is left there
}

static void write_all(const char *path, const char *text)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    assert_done(tfos_stream_open_writer(path, &stream, &err));
    assert_done(stream->write(stream, text, strlen(text), &err));
    assert_done(stream->finish(stream, &err));
    tfos_stream_close(stream);
}

static void assert_content(struct tfos_stream *stream, const char *text)
{
    struct tfos_error err;
    char bytes[64] = "";
    size_t have = 0, count = 0;
    enum tfos_status status;
    while ((status = stream->read(stream, bytes + have, 3, &count, &err)) == TFOS_OK)
        have += count;
    assert_int_equal(status, TFOS_END);
    assert_string_equal(bytes, text);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = make_place();
    struct tfos_stream *stream = NULL;
    write_all(place.path, "first");
    write_all(place.path, "second text"); // replaces it
    assert_done(tfos_stream_open_reader(place.path, &stream, &err));
    assert_content(stream, "second text");
    assert_done(stream->seek(stream, 7, &err));
    assert_content(stream, "text");
    assert_done(stream->seek(stream, 700, &err));
    assert_content(stream, "");
    assert_null(stream->write);
    tfos_stream_close(stream);
    remove_place(&place);
}

static void a_file_appears_when_it_is_finished(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = make_place();
    struct tfos_stream *one = NULL, *other = NULL;
    assert_done(tfos_stream_open_writer(place.path, &one, &err));
    assert_done(tfos_stream_open_writer(place.path, &other, &err)); // neither spoils the other's
    assert_done(one->write(one, "one", 3, &err));
    assert_done(other->write(other, "other", 5, &err));
    assert_int_equal(access(place.path, F_OK), -1);
    assert_done(one->finish(one, &err));
    assert_int_equal(access(place.path, F_OK), 0);
    tfos_stream_close(one);
    tfos_stream_close(other); // without finish(): given up
    assert_int_equal(entry_count(place.folder), 1);
    assert_done(tfos_stream_open_reader(place.path, &one, &err));
    assert_content(one, "one");
    tfos_stream_close(one);
    remove_place(&place);
}

/// A process that is killed while it writes leaves nothing.
static void a_killed_writer_leaves_nothing(void **state)
{
    (void)state;
    struct place place = make_place();
    int wait_status = 0;
    int probe = open(place.folder, O_TMPFILE | O_WRONLY, 0666);
    if (probe < 0)
        skip(); // the file system has no files without a name
    close(probe);
    pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (pid == 0) {
        struct tfos_stream *stream = NULL;
        if (tfos_stream_open_writer(place.path, &stream, NULL) == TFOS_OK &&
            stream->write(stream, "part", 4, NULL) == TFOS_OK)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_true(WIFSIGNALED(wait_status));
    assert_int_equal(entry_count(place.folder), 0);
    remove_place(&place);
}

static void failures_name_the_path(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = make_place();
    struct tfos_stream *stream = NULL;
    char below[128];
    snprintf(below, sizeof(below), "%s/none/data", place.folder);
    assert_int_equal(tfos_stream_open_reader(place.path, &stream, &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, place.path));
    assert_int_equal(tfos_stream_open_writer(below, &stream, &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, below));
    assert_int_equal(tfos_stream_open_reader(place.folder, &stream, &err), TFOS_IO);
    assert_non_null(strstr(err.message, "it is a folder"));
    assert_int_equal(tfos_stream_open_writer(place.folder, &stream, &err), TFOS_IO);
    assert_null(stream);
    remove_place(&place);
}

static void a_full_device(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    struct stat before, after;
    assert_int_equal(stat("/dev/full", &before), 0);
    assert_done(tfos_stream_open_writer("/dev/full", &stream, &err));
    assert_int_equal(stream->write(stream, "x", 1, &err), TFOS_IO);
    assert_non_null(strstr(err.message, "/dev/full"));
    tfos_stream_close(stream);
    assert_int_equal(stat("/dev/full", &after), 0); // it was not replaced by a file
    assert_int_equal(before.st_rdev, after.st_rdev);
}

static void *write_to_pipe(void *fd)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    assert_done(tfos_stream_open_fd(*(int *)fd, &stream, &err));
    assert_null(stream->read);
    assert_done(stream->write(stream, "through a pipe", 14, &err));
    assert_done(stream->finish(stream, &err));
    tfos_stream_close(stream);
    assert_int_equal(close(*(int *)fd), 0); // it was borrowed
    return NULL;
}

static void descriptors_are_borrowed(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    int fds[2];
    pthread_t thread;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_to_pipe, &fds[1]), 0);
    assert_done(tfos_stream_open_fd(fds[0], &stream, &err));
    assert_null(stream->seek);
    assert_content(stream, "through a pipe");
    tfos_stream_close(stream);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(tfos_stream_open_fd(fds[0], &stream, &err), TFOS_INVALID);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(what_is_written_is_read),
    cmocka_unit_test(a_file_appears_when_it_is_finished),
    cmocka_unit_test(a_killed_writer_leaves_nothing),
    cmocka_unit_test(failures_name_the_path),
    cmocka_unit_test(a_full_device),
    cmocka_unit_test(descriptors_are_borrowed),
};

TEST_MAIN(cases)
