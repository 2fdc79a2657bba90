// SPDX-License-Identifier: Apache-2.0
// Event files with the feed's figures: one a run, sound records, one point each time. That
// TensorBoard reads them is tested with TensorBoard (python/tests/test_progress.py).
#include <endian.h>
#include <glob.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tfos/record.h>
#include <unistd.h>

#include "harness.h"
#include "node/event_writer.h"

#define FILE_LIMIT 65536

struct scene {
    char folder[64];
    char log_directory[96];
    struct tfos__node_event_writer scalars;
};

static void scene_open(struct scene *scene)
{
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/tfos-scalars-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->log_directory, sizeof(scene->log_directory), "%s/logs/here", scene->folder);
    scene->scalars = (struct tfos__node_event_writer){
        .log_directory = scene->log_directory, .host = "host-1", .begun_s = 1700000000};
}

static void scene_close(struct scene *scene)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", scene->folder);
    FILE *shell = popen(command, "r");
    assert_non_null(shell);
    assert_int_equal(pclose(shell), 0);
}

/// Reads the only event file of a run.
static size_t read_run(const struct scene *scene, const char *run, uint8_t *bytes)
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/%s/events.out.tfevents.1700000000.host-1.*.tfos",
             scene->log_directory, run);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    FILE *file = fopen(found.gl_pathv[0], "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, FILE_LIMIT, file);
    fclose(file);
    globfree(&found);
    return size;
}

/// Checks the records' frames, and gives how many there are and the last one.
static int check_records(const uint8_t *bytes, size_t size, const uint8_t **last, size_t *last_size)
{
    int count = 0;
    for (size_t at = 0; at < size; count++) {
        uint64_t length;
        struct tfos_record_frame frame;
        assert_true(size - at >= sizeof(frame));
        memcpy(&length, bytes + at, sizeof(length));
        length = le64toh(length);
        assert_true(length <= size - at - sizeof(frame));
        *last = bytes + at + sizeof(frame.head);
        *last_size = length;
        tfos_record_frame_init(&frame, *last, length);
        assert_memory_equal(bytes + at, frame.head, sizeof(frame.head));
        assert_memory_equal(*last + length, frame.tail, sizeof(frame.tail));
        at += sizeof(frame) + length;
    }
    return count;
}

static bool has_bytes(const uint8_t *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

static json_t *make_figures(int second)
{
    return json_pack("{s:i, s:{s:i, s:f, s:f, s:f, s:f, s:f}, s:{s:{s:f, s:n}, s:{s:n}}}",
                     "uptime_s", second, "progress", "rows", 1000, "rows_per_second", 10.0,
                     "bytes_per_second", 2.5e6, "ring_fill", 0.5, "reader_wait", 0.1, "writer_wait",
                     0.2, "nodes", "worker:0", "rows_per_second", 4.0, "ring_fill", "worker:1",
                     "rows_per_second");
}

static void each_run_has_its_points(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos_error err;
    static uint8_t bytes[FILE_LIMIT];
    const uint8_t *last;
    size_t last_size;
    scene_open(&scene);
    for (int second = 1; second <= 3; second++) {
        json_t *figures = make_figures(second);
        assert_done(tfos__node_event_writer_write(&scene.scalars, figures, &err));
        json_decref(figures);
    }
    size_t size = read_run(&scene, "tfos", bytes);
    assert_int_equal(check_records(bytes, size, &last, &last_size), 4); // the version first
    assert_true(has_bytes(bytes, size, "brain.Event:2"));
    // Step 3; a tag with its value, as protobuf has them.
    assert_int_equal(last[9], 2 << 3);
    assert_int_equal(last[10], 3);
    static const uint8_t rate[] = "\x0a\x14tfos/rows_per_second\x15\x00\x00\x20\x41";
    assert_non_null(memmem(last, last_size, rate, sizeof(rate) - 1));
    static const uint8_t speed[] = "\x0a\x19tfos/megabytes_per_second\x15\x00\x00\x20\x40";
    assert_non_null(memmem(last, last_size, speed, sizeof(speed) - 1));
    size = read_run(&scene, "tfos/worker_0", bytes);
    assert_int_equal(check_records(bytes, size, &last, &last_size), 4);
    assert_true(has_bytes(last, last_size, "tfos/rows_per_second"));
    assert_false(has_bytes(last, last_size, "tfos/ring_fill"));
    // Nothing is known of this one.
    char path[256];
    snprintf(path, sizeof(path), "%s/tfos/worker_1", scene.log_directory);
    assert_int_not_equal(access(path, F_OK), 0);
    scene_close(&scene);
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos_error err;
    scene_open(&scene);
    snprintf(scene.log_directory, sizeof(scene.log_directory), "/dev/null/logs");
    json_t *figures = make_figures(1);
    assert_int_equal(tfos__node_event_writer_write(&scene.scalars, figures, &err), TFOS_IO);
    assert_non_null(strstr(err.message, "/dev/null"));
    // A folder has the file's name.
    snprintf(scene.log_directory, sizeof(scene.log_directory), "%s", scene.folder);
    char path[256];
    snprintf(path, sizeof(path), "%s/tfos", scene.folder);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/tfos/events.out.tfevents.1700000000.host-1.%d.tfos",
             scene.folder, (int)getpid());
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(tfos__node_event_writer_write(&scene.scalars, figures, &err), TFOS_IO);
    assert_non_null(strstr(err.message, path));
    json_decref(figures);
    scene_close(&scene);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(each_run_has_its_points),
    cmocka_unit_test(a_file_that_cannot_be_written_is_named),
};

TEST_MAIN(cases)
