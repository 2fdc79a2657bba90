// SPDX-License-Identifier: Apache-2.0
/// Copies between file systems. A file appears when it is whole, and an interrupted copy removes
/// what it has written; a second interrupt ends the program at once.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/stream.h>
#include <unistd.h>

#include "bytes.h"
#include "fs_files.h"
#include "record_files.h"
#include "terminal.h"

#define BLOCK_SIZE (1u << 20)
#define LOOK_MS 200

static volatile sig_atomic_t interrupt;

static void note_interrupt(int number)
{
    interrupt = number;
}

static void catch_interrupts(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    const struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}

// Waits for the standard input, which may not come for long. False: the copy is to end.
static bool may_go_on(const struct fs_file *source)
{
    struct pollfd slot = {.fd = STDIN_FILENO, .events = POLLIN};
    while (interrupt == 0 && strcmp(source->name, "-") == 0 && poll(&slot, 1, LOOK_MS) <= 0)
        continue;
    return interrupt == 0;
}

static int copy_stream(struct tfos_stream *input, struct tfos_stream *output,
                       const struct fs_file *source)
{
    struct tfos_error err;
    uint64_t done = 0;
    size_t count = 0;
    char *block = allocate(BLOCK_SIZE, 1);
    enum tfos_status status = TFOS_OK;
    while (status == TFOS_OK && may_go_on(source)) {
        status = input->read(input, block, BLOCK_SIZE, &count, &err);
        if (status != TFOS_OK)
            break;
        status = output->write(output, block, count, &err);
        done += count;
        progress_show_copy(done, source->info.size, source->name);
    }
    if (status == TFOS_END)
        status = output->finish(output, &err);
    free(block);
    return status < 0 ? say_error(&err) : interrupt != 0;
}

static int copy_file(const struct fs_file *source, const char *target, bool is_forced)
{
    struct tfos_file_info info;
    if (fs_look(target, &info) != 0)
        return 1;
    if (info.kind == TFOS_FILE_FOLDER)
        return fs_refuse(target, "it is a folder");
    if (info.kind == TFOS_FILE_REGULAR && !is_forced)
        return fs_refuse(target, "it exists already; -f replaces it");
    struct tfos_stream *input = open_input(source->name);
    struct tfos_stream *output = input ? open_output(target) : NULL;
    int status = output ? copy_stream(input, output, source) : 1;
    tfos_stream_close(output);
    tfos_stream_close(input);
    return status;
}

static int copy_tree(const struct fs_file *source, const char *target, bool is_forced)
{
    struct fs_files files = {0};
    struct tfos_error err;
    struct tfos_file_system *system = tfos_file_system_of(target);
    if (source->info.kind != TFOS_FILE_FOLDER)
        return copy_file(source, target, is_forced);
    if (system->make_folder(system, target, &err) < 0)
        return say_error(&err);
    int status = fs_files_list(&files, source->name);
    for (size_t i = 0; i < files.count && interrupt == 0; i++) {
        char *base = fs_base(files.items[i].name), *name = fs_join(target, base);
        status |= copy_tree(&files.items[i], name, is_forced);
        free(name);
        free(base);
    }
    fs_files_clear(&files);
    return status;
}

// A folder in itself would never end.
static bool is_within(const char *name, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(name, folder, size) == 0 && (name[size] == '\0' || name[size] == '/');
}

static int copy_all(const struct fs_files *sources, const char *target, bool is_folder,
                    bool is_forced)
{
    int status = 0;
    for (size_t i = 0; i < sources->count && interrupt == 0; i++) {
        const struct fs_file *source = &sources->items[i];
        char *base = fs_base(source->name);
        char *name = is_folder ? fs_join(target, base) : check_memory(strdup(target));
        if (is_within(name, source->name))
            status |= fs_refuse(name, "it is, or is in, what is to be copied");
        else
            status |= copy_tree(source, name, is_forced);
        free(name);
        free(base);
    }
    progress_end();
    return status;
}

static int copy(const struct fs_options *options)
{
    struct fs_files sources = {0};
    struct tfos_file_info info;
    const char *target = options->count > 1 ? options->names[options->count - 1] : ".";
    int count = options->count > 1 ? options->count - 1 : 1, status = fs_look(target, &info);
    if (status != 0)
        return status;
    if (count == 1 && strcmp(options->names[0], "-") == 0) {
        char standard[] = "-";
        return copy_file(&(struct fs_file){.name = standard}, target, options->letters['f']);
    }
    for (int i = 0; i < count; i++)
        status |= fs_files_match(&sources, options->names[i]);
    bool is_folder = info.kind == TFOS_FILE_FOLDER;
    if (!is_folder && (count > 1 || sources.count > 1))
        status = fs_refuse(target, "several files are copied into a folder, which this is not");
    else
        status |= copy_all(&sources, target, is_folder, options->letters['f']);
    fs_files_clear(&sources);
    return status;
}

int fs_copy(const struct fs_options *options)
{
    catch_interrupts();
    int status = copy(options);
    if (interrupt != 0)
        raise(interrupt); // whose handling is the usual one again
    return status;
}
