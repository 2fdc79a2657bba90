// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files of the folders or files named on the command line: what a
// fuzzer once found stays tested with any compiler. Fails when there is nothing to run, so that a
// lost corpus is noticed.
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The number of inputs run: 1, or -1 when the file cannot be read.
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat state;
    if (!file || fstat(fileno(file), &state) != 0) {
        perror(path);
        if (file)
            fclose(file);
        return -1;
    }
    size_t size = (size_t)state.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1); // exactly so much, for the sanitizer to guard
    int result = -1;
    if (data && fread(data, 1, size, file) == size) {
        LLVMFuzzerTestOneInput(data, size);
        result = 1;
    } else {
        perror(path);
    }
    free(data);
    fclose(file);
    return result;
}

static int replay_folder(const char *path)
{
    struct dirent **entries;
    int entry_count = scandir(path, &entries, NULL, alphasort);
    if (entry_count < 0)
        return replay_file(path);
    int count = 0;
    for (int i = 0; i < entry_count; i++) {
        char name[4096];
        snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
        int result = entries[i]->d_name[0] == '.' ? 0 : replay_file(name);
        count = result < 0 || count < 0 ? -1 : count + result;
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);
        if (count < 0)
            return 1;
        total += count;
    }
    printf("%d inputs replayed\n", total);
    return total > 0 ? 0 : 1;
}
