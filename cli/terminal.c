// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS 1000
#define STEP_MS 200

static struct {
    int64_t next_ms; ///< when the line is to be written again; 0: it has not begun
    int width;       ///< of the line that is there
} line;

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int say_error(const struct tfos_error *err)
{
    progress_end();
    fprintf(stderr, "tfos: %s\n", err->message);
    return 1;
}

void say_damage(void *context, const struct tfos_record_damage *damage)
{
    (void)context;
    progress_end();
    fprintf(stderr, "tfos: %s\n", damage->message);
}

static bool is_due(void)
{
    if (line.next_ms == 0)
        line.next_ms = isatty(STDERR_FILENO) ? now_ms() + FIRST_MS : INT64_MAX;
    return line.next_ms != INT64_MAX && now_ms() >= line.next_ms;
}

// Hides the end of a longer line.
static void end_line(int width)
{
    fprintf(stderr, "%*s", line.width > width ? line.width - width : 0, "");
    fflush(stderr);
    line.width = width;
    line.next_ms = now_ms() + STEP_MS;
}

void progress_show(const char *what, uint64_t records, uint64_t bytes, const char *path)
{
    if (is_due())
        end_line(fprintf(stderr, "\r%s: %llu records, %llu MiB of %s", what,
                         (unsigned long long)records, (unsigned long long)(bytes >> 20), path));
}

void progress_show_copy(uint64_t bytes, uint64_t size, const char *path)
{
    if (is_due())
        end_line(fprintf(stderr, "\rcopied: %llu of %llu MiB of %s",
                         (unsigned long long)(bytes >> 20), (unsigned long long)(size >> 20),
                         path));
}

void progress_end(void)
{
    if (line.width > 0)
        fprintf(stderr, "\r%*s\r", line.width, "");
    line.width = 0;
}
