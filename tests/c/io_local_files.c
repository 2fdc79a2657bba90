// SPDX-License-Identifier: Apache-2.0
// This machine's files through the interface of file systems. What it has in common with Hadoop's
// is in python/tests/test_file_systems.py, which asks both.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <tfos/file_system.h>

#include "folder.h"

static struct tfos_file_system *local(void)
{
    return tfos_file_system_of("/");
}

static enum tfos_file_kind kind_of(const char *name)
{
    struct tfos_error err;
    struct tfos_file_info info;
    assert_done(local()->look(local(), name, &info, &err));
    return info.kind;
}

static void write_text(const char *name, enum tfos_file_writing how, const char *text)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    assert_done(local()->open_writer(local(), name, how, &stream, &err));
    assert_done(stream->write(stream, text, strlen(text), &err));
    assert_done(stream->flush(stream, true, &err));
    assert_int_equal(kind_of(name), how == TFOS_FILE_REPLACE ? TFOS_FILE_NONE : TFOS_FILE_REGULAR);
    assert_done(stream->finish(stream, &err));
    tfos_stream_close(stream);
}

static void assert_text(const char *name, uint64_t offset, const char *text)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    char data[64];
    size_t count = 0;
    assert_done(local()->open_reader(local(), name, &stream, &err));
    assert_done(stream->seek(stream, offset, &err));
    assert_done(stream->read(stream, data, sizeof(data), &count, &err));
    assert_int_equal(count, strlen(text));
    assert_memory_equal(data, text, count);
    assert_int_equal(stream->read(stream, data, sizeof(data), &count, &err), TFOS_END);
    tfos_stream_close(stream);
}

static void names_and_uris(void **state)
{
    (void)state;
    assert_ptr_equal(tfos_file_system_of("a"), local());
    assert_ptr_equal(tfos_file_system_of("file:/a"), local());
    assert_ptr_equal(tfos_file_system_of("FILE://localhost/a"), local());
    assert_ptr_equal(tfos_file_system_of("c:/a"), local());
    assert_ptr_not_equal(tfos_file_system_of("hdfs://host/a"), local());
    assert_ptr_not_equal(tfos_file_system_of("hdfs:/a"), local());
}

static void files_are_written_and_read(void **state)
{
    struct folder folder = enter_folder();
    (void)state;
    write_text("a", TFOS_FILE_REPLACE, "one");
    write_text("b", TFOS_FILE_CREATE, "one");
    write_text("b", TFOS_FILE_APPEND, " two");
    write_text("c", TFOS_FILE_APPEND, "three");
    assert_text("a", 0, "one");
    assert_text("b", 4, "two");
    write_text("b", TFOS_FILE_CREATE, "-");
    assert_text("b", 0, "-");
    assert_text("c", 1, "hree");
    leave_folder(folder);
}

static void a_file_appears_with_its_first_flush(void **state)
{
    struct folder folder = enter_folder();
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    (void)state;
    for (enum tfos_file_writing how = TFOS_FILE_CREATE; how <= TFOS_FILE_APPEND; how++) {
        for (int is_flushed = 0; is_flushed < 2; is_flushed++) {
            assert_done(local()->open_writer(local(), "a", how, &stream, &err));
            assert_done(stream->write(stream, "one", 3, &err));
            assert_int_equal(kind_of("a"), TFOS_FILE_NONE);
            if (is_flushed) {
                assert_done(stream->flush(stream, false, &err));
                assert_text("a", 0, "one");
                assert_done(stream->write(stream, " two", 4, &err));
            }
            tfos_stream_close(stream);
            assert_int_equal(kind_of("a"), is_flushed ? TFOS_FILE_REGULAR : TFOS_FILE_NONE);
        }
        assert_text("a", 0, "one two");
        assert_int_equal(remove("a"), 0);
    }
    leave_folder(folder);
}

static void folders(void **state)
{
    struct folder folder = enter_folder();
    struct tfos_error err;
    (void)state;
    assert_done(local()->make_folder(local(), "a/b//c/", &err));
    assert_done(local()->make_folder(local(), "a/b", &err));
    write_text("a/f", TFOS_FILE_REPLACE, "1");
    assert_int_equal(local()->make_folder(local(), "a/f/g", &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "a/f/g"));
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(symlink("../link", "a/b/back"), 0);
    assert_int_equal(local()->remove(local(), "a", false, &err), TFOS_IO);
    assert_int_equal(err.os_errno, ENOTEMPTY);
    assert_done(local()->rename(local(), "a/b", "d", &err));
    assert_int_equal(kind_of("d/c"), TFOS_FILE_FOLDER);
    assert_done(local()->remove(local(), "d", true, &err)); // not what a link in it leads to
    assert_int_equal(kind_of("d"), TFOS_FILE_NONE);
    assert_int_equal(kind_of("a/f"), TFOS_FILE_REGULAR);
    assert_int_equal(local()->remove(local(), "d", true, &err), TFOS_NOT_FOUND);
    leave_folder(folder);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(names_and_uris),
    cmocka_unit_test(files_are_written_and_read),
    cmocka_unit_test(a_file_appears_with_its_first_flush),
    cmocka_unit_test(folders),
};

TEST_MAIN(cases)
