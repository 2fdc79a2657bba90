// SPDX-License-Identifier: Apache-2.0
/// tfos fs: files and folders of this machine, and of Hadoop's file systems, as `hdfs dfs` shows
/// and changes them. A command may begin with "-", as there.
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bytes.h"
#include "commands.h"
#include "fs_files.h"
#include "hadoop_jars.h"
#include "record_files.h"
#include "terminal.h"

#define BLOCK_SIZE (1u << 20)
#define HEAD_SIZE 1024
#define SIZE_TEXT 32

/// Does something with a file of a name or a pattern. The exit status.
typedef int file_taker(const struct fs_options *options, const struct fs_file *file);

static int for_each(const struct fs_options *options, file_taker *take)
{
    int status = 0;
    for (int i = 0; i < options->count; i++) {
        struct fs_files files = {0};
        status |= fs_files_match(&files, options->names[i]);
        for (size_t j = 0; j < files.count; j++)
            status |= take(options, &files.items[j]);
        fs_files_clear(&files);
    }
    return status;
}

// ---- ls, stat, du

static const char *print_size(uint64_t size, bool is_human, char text[SIZE_TEXT])
{
    static const char units[] = " KMGTPE";
    double value = (double)size;
    int unit = 0;
    for (; is_human && value >= 1024; value /= 1024)
        unit++;
    if (unit > 0)
        snprintf(text, SIZE_TEXT, "%.1f %c", value, units[unit]);
    else
        snprintf(text, SIZE_TEXT, "%llu", (unsigned long long)size);
    return text;
}

static const char *print_mode(const struct tfos_file_info *info, char text[11])
{
    static const char letters[] = "rwxrwxrwx";
    text[0] = info->kind == TFOS_FILE_FOLDER ? 'd' : '-';
    for (int i = 0; i < 9; i++)
        text[i + 1] = info->mode & (0400u >> i) ? letters[i] : '-';
    if (info->mode & 01000)
        text[9] = info->mode & 1 ? 't' : 'T';
    text[10] = '\0';
    return text;
}

// A file of this machine has numbers in place of names.
static void name_owners(const char *name, struct tfos_file_info *info)
{
    if (is_remote(name))
        return;
    const struct passwd *user = getpwuid((uid_t)strtoul(info->owner, NULL, 10));
    const struct group *group = getgrgid((gid_t)strtoul(info->group, NULL, 10));
    if (user)
        snprintf(info->owner, sizeof(info->owner), "%s", user->pw_name);
    if (group)
        snprintf(info->group, sizeof(info->group), "%s", group->gr_name);
}

static void print_time(int64_t modified_ms, char text[32])
{
    time_t seconds = (time_t)(modified_ms / 1000);
    struct tm local;
    if (!localtime_r(&seconds, &local) || strftime(text, 32, "%Y-%m-%d %H:%M", &local) == 0)
        text[0] = '\0';
}

static void print_file(const struct fs_options *options, const struct fs_file *file)
{
    char mode[11], size[SIZE_TEXT], time[32], copies[16] = "-";
    struct tfos_file_info info = file->info;
    name_owners(file->name, &info);
    print_time(info.modified_ms, time);
    if (info.replication > 0)
        snprintf(copies, sizeof(copies), "%d", info.replication);
    printf("%s %3s %-10s %-10s %12s %s %s\n", print_mode(&info, mode), copies, info.owner,
           info.group, print_size(info.size, options->letters['h'], size), time, file->name);
}

static int list_folder(const struct fs_options *options, const struct fs_file *folder)
{
    struct fs_files files = {0};
    int status = fs_files_list(&files, folder->name);
    if (status == 0 && !options->letters['R'])
        printf("Found %zu item%s\n", files.count, files.count == 1 ? "" : "s");
    for (size_t i = 0; i < files.count; i++) {
        print_file(options, &files.items[i]);
        if (options->letters['R'] && files.items[i].info.kind == TFOS_FILE_FOLDER)
            status |= list_folder(options, &files.items[i]);
    }
    fs_files_clear(&files);
    return status;
}

static int list(const struct fs_options *options, const struct fs_file *file)
{
    if (file->info.kind == TFOS_FILE_FOLDER && !options->letters['d'])
        return list_folder(options, file);
    print_file(options, file);
    return 0;
}

static int run_ls(const struct fs_options *options)
{
    char here[] = ".", *names[] = {here};
    struct fs_options own = *options;
    if (own.count == 0) {
        own.names = names;
        own.count = 1;
    }
    return for_each(&own, list);
}

static int show(const struct fs_options *options, const struct fs_file *file)
{
    static const char *const kinds[] = {"nothing", "regular file", "directory", "special file"};
    char mode[11], time[32];
    struct tfos_file_info info = file->info;
    (void)options;
    name_owners(file->name, &info);
    print_time(info.modified_ms, time);
    printf("%s: %s, %llu bytes, modified %s, %s %s %s", file->name, kinds[info.kind],
           (unsigned long long)info.size, time, print_mode(&info, mode), info.owner, info.group);
    if (info.replication > 0)
        printf(", replication %d", info.replication);
    putchar('\n');
    return 0;
}

static int run_stat(const struct fs_options *options)
{
    return for_each(options, show);
}

// Adds the bytes of all files in a folder, or of a file.
static int measure(const struct fs_file *file, uint64_t *size)
{
    struct fs_files files = {0};
    int status = 0;
    *size += file->info.size;
    if (file->info.kind != TFOS_FILE_FOLDER)
        return 0;
    status = fs_files_list(&files, file->name);
    for (size_t i = 0; i < files.count; i++)
        status |= measure(&files.items[i], size);
    fs_files_clear(&files);
    return status;
}

static int print_measure(const struct fs_options *options, const struct fs_file *file)
{
    char text[SIZE_TEXT];
    uint64_t size = 0;
    int status = measure(file, &size);
    printf("%-12s %s\n", print_size(size, options->letters['h'], text), file->name);
    return status;
}

static int measure_parts(const struct fs_options *options, const struct fs_file *file)
{
    struct fs_files files = {0};
    if (options->letters['s'] || file->info.kind != TFOS_FILE_FOLDER)
        return print_measure(options, file);
    int status = fs_files_list(&files, file->name);
    for (size_t i = 0; i < files.count; i++)
        status |= print_measure(options, &files.items[i]);
    fs_files_clear(&files);
    return status;
}

static int run_du(const struct fs_options *options)
{
    return for_each(options, measure_parts);
}

// ---- cat, head

static int print_content(const struct fs_file *file, uint64_t most)
{
    struct tfos_error err;
    struct tfos_stream *stream = open_input(file->name);
    char *block = allocate(BLOCK_SIZE, 1);
    enum tfos_status status = stream ? TFOS_OK : TFOS_IO;
    size_t count = 0;
    while (status == TFOS_OK && most > 0 && !ferror(stdout)) {
        status = stream->read(stream, block, most < BLOCK_SIZE ? (size_t)most : BLOCK_SIZE, &count,
                              &err);
        if (status < 0)
            say_error(&err);
        if (status == TFOS_OK)
            most -= fwrite(block, 1, count, stdout);
    }
    tfos_stream_close(stream);
    free(block);
    return status < 0;
}

static int print_all(const struct fs_options *options, const struct fs_file *file)
{
    (void)options;
    return print_content(file, UINT64_MAX);
}

static int print_head(const struct fs_options *options, const struct fs_file *file)
{
    (void)options;
    return print_content(file, HEAD_SIZE);
}

static int run_cat(const struct fs_options *options)
{
    return for_each(options, print_all);
}

static int run_head(const struct fs_options *options)
{
    return for_each(options, print_head);
}

// ---- rm, mv, mkdir

static int remove_one(const struct fs_options *options, const struct fs_file *file)
{
    struct tfos_error err;
    struct tfos_file_system *system = tfos_file_system_of(file->name);
    bool is_recursive = options->letters['r'] || options->letters['R'];
    if (file->info.kind == TFOS_FILE_FOLDER && !is_recursive)
        return fs_refuse(file->name, "it is a folder; -r deletes it with all that is in it");
    if (system->remove(system, file->name, is_recursive, &err) < 0)
        return say_error(&err);
    printf("Deleted %s\n", file->name);
    return 0;
}

static int run_rm(const struct fs_options *options)
{
    struct fs_options own = *options;
    struct tfos_file_list *list = NULL;
    int status = 0;
    for (own.count = 1; own.names < options->names + options->count; own.names++) {
        find_hadoop(own.names[0]);
        if (options->letters['f'] &&
            tfos_file_list_match(own.names[0], &list, NULL) == TFOS_NOT_FOUND)
            continue;
        tfos_file_list_close(list);
        list = NULL;
        status |= for_each(&own, remove_one);
    }
    return status;
}

static int move_one(const struct fs_file *source, const char *target, bool is_folder)
{
    struct tfos_error err;
    struct tfos_file_info info;
    struct tfos_file_system *system = tfos_file_system_of(source->name);
    char *base = fs_base(source->name);
    char *name = is_folder ? fs_join(target, base) : check_memory(strdup(target));
    size_t head = tfos_file_name_path_offset(source->name);
    bool is_same = tfos_file_system_of(name) == system &&
                   (!is_remote(name) || (tfos_file_name_path_offset(name) == head &&
                                         strncmp(name, source->name, head) == 0));
    int status = fs_look(name, &info);
    if (status == 0 && !is_same)
        status = fs_refuse(name, "it is in another file system; get and put copy");
    else if (status == 0 && info.kind != TFOS_FILE_NONE)
        status = fs_refuse(name, "it exists already");
    else if (status == 0 && system->rename(system, source->name, name, &err) < 0)
        status = say_error(&err);
    free(name);
    free(base);
    return status;
}

static int run_mv(const struct fs_options *options)
{
    struct fs_files sources = {0};
    struct tfos_file_info info;
    const char *target = options->names[options->count - 1];
    int status = fs_look(target, &info);
    if (status != 0)
        return status;
    for (int i = 0; i < options->count - 1; i++)
        status |= fs_files_match(&sources, options->names[i]);
    if (sources.count > 1 && info.kind != TFOS_FILE_FOLDER)
        status = fs_refuse(target, "several files are moved into a folder, which this is not");
    else
        for (size_t i = 0; i < sources.count; i++)
            status |= move_one(&sources.items[i], target, info.kind == TFOS_FILE_FOLDER);
    fs_files_clear(&sources);
    return status;
}

// Whether the folder that a name is in is there; 0, or the exit status.
static int check_parent(const char *name)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    char *base = fs_base(name);
    size_t size = strlen(name);
    while (size > 1 && name[size - 1] == '/')
        size--;
    char *parent = check_memory(strndup(name, size - strlen(base)));
    int status = parent[0] == '\0' ? 0 : fs_look(parent, &info);
    if (status == 0 && parent[0] != '\0' && info.kind != TFOS_FILE_FOLDER)
        status = fs_refuse(parent, "there is no such folder; -p makes it");
    free(parent);
    free(base);
    return status;
}

static int make_folder(const char *name, bool makes_parents)
{
    struct tfos_error err;
    struct tfos_file_info info;
    struct tfos_file_system *system = tfos_file_system_of(name);
    int status = fs_look(name, &info);
    if (status == 0 && !makes_parents)
        status =
            info.kind != TFOS_FILE_NONE ? fs_refuse(name, "it exists already") : check_parent(name);
    if (status == 0 && system->make_folder(system, name, &err) < 0)
        status = say_error(&err);
    return status;
}

static int run_mkdir(const struct fs_options *options)
{
    int status = 0;
    for (int i = 0; i < options->count; i++)
        status |= make_folder(options->names[i], options->letters['p']);
    return status;
}

// ---- test

static int run_test(const struct fs_options *options)
{
    const bool *asked = options->letters;
    struct tfos_file_info info;
    if (fs_look(options->names[0], &info) != 0)
        return 1;
    bool is_there = info.kind != TFOS_FILE_NONE, is_folder = info.kind == TFOS_FILE_FOLDER;
    return !(is_there && (!asked['d'] || is_folder) && (!asked['f'] || !is_folder) &&
             (!asked['z'] || (!is_folder && info.size == 0)) &&
             (!asked['s'] || is_folder || info.size > 0));
}

// ---- the command

static const struct {
    const char *name, *letters;
    int least, most; ///< arguments; a most of 0: any number
    const char *arguments, *help;
    int (*run)(const struct fs_options *options);
} commands[] = {
    {"ls", "dhR", 0, 0, "[-d] [-h] [-R] [PATH ...]", "what is there, and in folders", run_ls},
    {"cat", "", 1, 0, "FILE ...", "prints files", run_cat},
    {"head", "", 1, 0, "FILE ...", "prints the first kilobyte of files", run_head},
    {"get", "f", 1, 0, "[-f] SOURCE ... [TARGET]", "copies to this machine, here without TARGET",
     fs_copy},
    {"put", "f", 2, 0, "[-f] SOURCE ... TARGET", "copies from this machine; -: the standard input",
     fs_copy},
    {"rm", "frR", 1, 0, "[-f] [-r] PATH ...", "deletes; -f: what is missing is no error", run_rm},
    {"mv", "", 2, 0, "SOURCE ... TARGET", "gives another name or place", run_mv},
    {"mkdir", "p", 1, 0, "[-p] FOLDER ...", "makes folders; -p: with those above them", run_mkdir},
    {"stat", "", 1, 0, "PATH ...", "size, time, permissions", run_stat},
    {"du", "hs", 1, 0, "[-h] [-s] PATH ...", "bytes of what is in folders; -s: of each whole",
     run_du},
    {"test", "defsz", 1, 1, "-d|-e|-f|-s|-z PATH",
     "exit status 0: a folder, there, a file, not empty, empty", run_test},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *out)
{
    char left[64];
    fputs("usage: tfos fs COMMAND [OPTION] PATH ...\n\n"
          "A PATH is one of this machine, or a URI of a file system of Hadoop's, such as\n"
          "hdfs://HOST:PORT/PATH or hdfs:///PATH. It may be a pattern: * ? [a-z] {a,b}\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].arguments);
        fprintf(out, "  %-33s %s\n", left, commands[i].help);
    }
}

static int refuse(const char *format, const char *argument)
{
    fputs("tfos fs: ", stderr);
    fprintf(stderr, format, argument);
    fputs("; tfos fs --help says how it is used\n", stderr);
    return EXIT_USAGE;
}

// Sorts options from names, in place. 0, or the exit status.
static int parse(struct fs_options *options, const char *letters, int argc, char **argv)
{
    bool has_ended = false;
    options->names = argv;
    for (int i = 0; i < argc; i++) {
        char *word = argv[i];
        if (has_ended || word[0] != '-' || word[1] == '\0') {
            options->names[options->count++] = word;
        } else if (strcmp(word, "--") == 0) {
            has_ended = true;
        } else {
            for (const char *at = word + 1; *at != '\0'; at++) {
                if (!strchr(letters, *at))
                    return refuse("there is no option %s", word);
                options->letters[(unsigned char)*at] = true;
            }
        }
    }
    return 0;
}

int run_fs(int argc, char **argv)
{
    struct fs_options options = {0};
    size_t i = 0;
    if (argc == 0)
        return refuse("%s", "a command is missing");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    const char *name = argv[0] + (argv[0][0] == '-');
    while (i < COMMAND_COUNT && strcmp(name, commands[i].name) != 0)
        i++;
    if (i == COMMAND_COUNT)
        return refuse("there is no command \"%s\"", argv[0]);
    int status = parse(&options, commands[i].letters, argc - 1, argv + 1);
    if (status != 0)
        return status;
    if (options.count < commands[i].least)
        return refuse("%s: a path is missing", name);
    if (commands[i].most > 0 && options.count > commands[i].most)
        return refuse("%s: there are too many paths", name);
    return commands[i].run(&options);
}
