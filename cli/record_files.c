// SPDX-License-Identifier: Apache-2.0
#include "record_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "hadoop_jars.h"
#include "terminal.h"
#include "value_text.h"

#define BLOCK_SIZE (64u << 10)
#define VIEW_COUNT 256

// ---- streams

static struct tfos_stream *open_stream(const char *path, int fd,
                                       enum tfos_status (*open_file)(const char *path,
                                                                     struct tfos_stream **out,
                                                                     struct tfos_error *err))
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    enum tfos_status status = strcmp(path, "-") == 0 ? tfos_stream_open_fd(fd, &stream, &err)
                                                     : open_file(path, &stream, &err);
    if (status < 0)
        say_error(&err);
    return stream;
}

struct tfos_stream *open_input(const char *path)
{
    return open_stream(path, STDIN_FILENO, tfos_stream_open_reader);
}

struct tfos_stream *open_output(const char *path)
{
    return open_stream(path, STDOUT_FILENO, tfos_stream_open_writer);
}

const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && folder[0] != '\0' ? folder : "/tmp";
}

int open_temporary_file(void)
{
    const char *folder = temporary_folder();
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0)
        return fd;
    // Not every file system has files without a name.
    int size = snprintf(path, sizeof(path), "%s/tfos-XXXXXX", folder);
    if (size > 0 && (size_t)size < sizeof(path))
        fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    else
        fprintf(stderr, "tfos: cannot write a temporary file in %s: %s (TMPDIR names another)\n",
                folder, strerror(errno));
    return fd;
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = write(fd, data, size);
        if (put < 0 && errno != EINTR)
            return false;
        data += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

int open_copy(const char *path)
{
    char block[BLOCK_SIZE];
    struct tfos_error err;
    size_t count;
    struct tfos_stream *stream = open_input(path);
    int fd = stream ? open_temporary_file() : -1;
    enum tfos_status status = TFOS_OK;
    while (fd >= 0 && status == TFOS_OK) {
        status = stream->read(stream, block, sizeof(block), &count, &err);
        if (status < 0)
            say_error(&err);
        if (status == TFOS_OK && !write_all(fd, block, count)) {
            fprintf(stderr, "tfos: cannot keep %s in %s: %s\n", path, temporary_folder(),
                    strerror(errno));
            status = TFOS_IO;
        }
    }
    tfos_stream_close(stream);
    if (fd >= 0 && (status < 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

// Copies the standard input. False with errno.
static bool copy_input(int fd)
{
    char block[BLOCK_SIZE];
    for (;;) {
        ssize_t got = read(STDIN_FILENO, block, sizeof(block));
        if (got == 0)
            return lseek(fd, 0, SEEK_SET) == 0;
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0 && !write_all(fd, block, (size_t)got))
            return false;
    }
}

int open_seekable_input(void)
{
    if (lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    int fd = open_temporary_file();
    if (fd >= 0 && !copy_input(fd)) {
        fprintf(stderr, "tfos: cannot keep the standard input in %s: %s\n", temporary_folder(),
                strerror(errno));
        close(fd);
        fd = -1;
    }
    return fd;
}

// ---- sources

static void keep(struct sources *sources, const char *name)
{
    int count = sources->count;
    // Room doubles whenever the count is a power of two.
    if ((count & (count - 1)) == 0)
        sources->names = check_memory(
            realloc(sources->names, (size_t)(count > 0 ? 2 * count : 1) * sizeof(*sources->names)));
    sources->names[sources->count++] = check_memory(strdup(name));
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

// How many entries of the folder a shell sees by `*`; -1 where it cannot be read.
static long count_entries(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    long count = 0;
    if (!folder)
        return -1;
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

// Whether the first `count` arguments have all of what is in the folder of `name`, as a shell makes
// them of FOLDER/*, and some of it is not hidden.
static bool is_of_whole_folder(const struct record_options *options, int count, const char *name)
{
    size_t size = (size_t)(base_of(name) - name);
    long named = 0, seen = 0;
    char *folder = allocate(size + 2, 1);
    for (int i = 0; i < count; i++) {
        const char *base = base_of(options->files[i]);
        bool is_beside = (size_t)(base - options->files[i]) == size &&
                         strncmp(options->files[i], name, size) == 0;
        named += is_beside && base[0] != '.';
        seen += is_beside && !tfos_file_name_is_hidden(base);
    }
    memcpy(folder, size > 0 ? name : ".", size > 0 ? size : 1);
    bool is_whole = seen > 0 && count_entries(folder) == named;
    free(folder);
    return is_whole;
}

// 0, or the exit status.
static int find_source(struct sources *sources, const char *name)
{
    struct tfos_error err;
    struct tfos_file_list *list = NULL;
    if (strcmp(name, "-") == 0) {
        keep(sources, name);
        return 0;
    }
    find_hadoop(name);
    if (tfos_file_list_find(name, NULL, &list, &err) < 0)
        return say_error(&err);
    for (size_t i = 0; i < tfos_file_list_count(list); i++)
        keep(sources, tfos_file_list_get(list, i));
    tfos_file_list_close(list);
    return 0;
}

static int find_target(struct sources *sources, const char *name)
{
    struct tfos_error err;
    const char *path = NULL;
    if (tfos_file_name_get_new(name, &path, &err) < 0)
        return say_error(&err);
    find_hadoop(name);
    keep(sources, path ? path : name);
    return 0;
}

int find_sources(struct sources *sources, struct record_options *options, int target_count)
{
    int count = options->file_count - target_count, status = 0;
    for (int i = 0; i < count && status != EXIT_USAGE && (status == 0 || target_count == 0); i++) {
        const char *name = options->files[i], *base = base_of(name);
        if (base[0] != '.' && tfos_file_name_is_hidden(base) &&
            is_of_whole_folder(options, count, name)) {
            fprintf(stderr, "tfos: %s is passed over, as Spark does: name it alone to read it\n",
                    name);
            continue;
        }
        status = find_source(sources, name);
        sources->has_failed |= status != 0;
    }
    if (target_count == 0 && sources->count > 0 && status != EXIT_USAGE)
        status = 0;
    if (status == 0 && target_count > 0)
        status = find_target(sources, options->files[count]);
    options->files = (const char *const *)sources->names;
    options->file_count = sources->count;
    return status;
}

void clear_sources(struct sources *sources)
{
    for (int i = 0; i < sources->count; i++)
        free(sources->names[i]);
    free(sources->names);
}

// ---- passes

static void take_damage(void *context, const struct tfos_record_damage *damage)
{
    struct pass *pass = context;
    if (pass->damages) {
        json_array_append_new(pass->damages,
                              json_pack("{s:o, s:I, s:I, s:s}", "file", text_to_json(pass->path),
                                        "offset", (json_int_t)damage->offset, "size",
                                        (json_int_t)damage->size, "damage",
                                        tfos_record_damage_text(damage->kind)));
        return;
    }
    progress_end();
    fprintf(stderr, "tfos: %s", damage->message);
    if (damage->size > 0)
        fprintf(stderr, " (%llu bytes passed over)", (unsigned long long)damage->size);
    fputc('\n', stderr);
}

int run_pass_on(struct pass *pass, struct tfos_stream *stream)
{
    struct tfos_error err;
    struct tfos_record_reader *reader = NULL;
    struct tfos_view records[VIEW_COUNT];
    struct tfos_record_reader_options options = reader_options(pass->options, pass->path);
    size_t count;
    options.on_damage = take_damage;
    options.context = pass;
    enum tfos_status status = tfos_record_reader_open(stream, &options, &reader, &err);
    int result = 0;
    while (status == TFOS_OK && result == 0) {
        status = tfos_record_reader_next_batch(reader, records, VIEW_COUNT, &count, &err);
        if (status == TFOS_OK && pass->take)
            result = pass->take(pass, records, count);
        pass->counts = tfos_record_reader_get_counts(reader);
        progress_show(pass->what ? pass->what : "read", pass->counts.records, pass->counts.bytes,
                      options.name);
    }
    progress_end();
    if (status < 0)
        result = say_error(&err);
    tfos_record_reader_close(reader);
    return result;
}

int run_pass(struct pass *pass)
{
    struct tfos_stream *stream = open_input(pass->path);
    if (!stream)
        return 1;
    int result = run_pass_on(pass, stream);
    tfos_stream_close(stream);
    return result;
}

// ---- outputs

static int open_one(struct output *output, const struct record_options *options, const char *path)
{
    struct tfos_error err;
    struct tfos_record_writer_options writing = {0};
    if (choose_compression(options, path, &writing.compression) != 0)
        return 1;
    output->stream = open_output(path);
    if (!output->stream)
        return 1;
    if (tfos_record_writer_open(output->stream, &writing, &output->writer, &err) < 0)
        return say_error(&err);
    return 0;
}

int open_outputs(struct outputs *outputs, const struct record_options *options, const char *path,
                 uint64_t count)
{
    *outputs = (struct outputs){.count = count > 0 ? count : 1};
    outputs->items = allocate((size_t)outputs->count, sizeof(*outputs->items));
    if (count == 0)
        return open_one(outputs->items, options, path);
    size_t size = strlen(path) + 32;
    char *part = allocate(size, 1);
    int status = 0;
    for (uint64_t i = 0; status == 0 && i < count; i++) {
        snprintf(part, size, "%s-%05llu-of-%05llu", path, (unsigned long long)i,
                 (unsigned long long)count);
        status = open_one(&outputs->items[i], options, part);
    }
    free(part);
    return status;
}

int write_to_outputs(struct outputs *outputs, const struct tfos_view *records, size_t count)
{
    struct tfos_error err;
    for (size_t i = 0; i < count; i++) {
        struct output *output = &outputs->items[outputs->next++ % outputs->count];
        if (tfos_record_writer_append(output->writer, &records[i], 1, &err) < 0)
            return say_error(&err);
    }
    return 0;
}

int finish_outputs(struct outputs *outputs)
{
    struct tfos_error err;
    for (uint64_t i = 0; i < outputs->count; i++)
        if (tfos_record_writer_finish(outputs->items[i].writer, &err) < 0)
            return say_error(&err);
    return 0;
}

void close_outputs(struct outputs *outputs)
{
    for (uint64_t i = 0; outputs->items && i < outputs->count; i++) {
        tfos_record_writer_close(outputs->items[i].writer);
        tfos_stream_close(outputs->items[i].stream);
    }
    free(outputs->items);
    outputs->items = NULL;
}
