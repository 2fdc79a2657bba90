// SPDX-License-Identifier: Apache-2.0
/// tfos status: the clusters whose drivers run on this machine under this user, as a table or as
/// JSON.
#include "commands.h"
#include "table.h"

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos.h>
#include <time.h>
#include <unistd.h>

#define QUERY_TIMEOUT_MS 2000
#define INTERVAL_MS 1000

struct options {
    bool is_json;
    bool is_watching;
};

/// The clusters' documents, an array that the caller owns, or NULL after saying why not.
static json_t *query(void)
{
    char *text;
    struct tfos_error err;
    if (tfos_status_query(QUERY_TIMEOUT_MS, &text, &err) < 0) {
        fprintf(stderr, "tfos: %s\n", err.message);
        return NULL;
    }
    json_error_t cause;
    json_t *clusters = json_loads(text, 0, &cause);
    tfos_free(text);
    if (!clusters)
        fprintf(stderr, "tfos: a driver's answer cannot be read: %s\n", cause.text);
    return clusters;
}

static int say_none(const struct options *options)
{
    if (options->is_json)
        puts("[]");
    else
        puts("no cluster runs on this machine under this user (tfos status looks for drivers: type "
             "it where "
             "the driver runs)");
    return 1;
}

/// The clusters as text, which the caller frees; NULL when out of memory.
static char *render(const struct options *options, const json_t *clusters)
{
    char *text = NULL;
    size_t size = 0;
    if (options->is_json)
        return json_dumps(clusters, options->is_watching ? JSON_COMPACT : JSON_INDENT(2));
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    print_clusters(out, clusters);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/// Overwrites what the screen has, line by line, so that nothing flickers.
static void repaint(const char *text)
{
    fputs("\033[H", stdout);
    for (size_t size; *text; text += size + 1) {
        size = strcspn(text, "\n");
        printf("%.*s\033[K\n", (int)size, text);
        if (!text[size])
            break;
    }
    fputs("\033[J", stdout);
}

/// Shows the clusters once; false when that is not possible.
static bool show(const struct options *options, const json_t *clusters)
{
    char *text = render(options, clusters);
    if (!text)
        return false;
    if (options->is_watching && !options->is_json && isatty(STDOUT_FILENO))
        repaint(text);
    else
        printf("%s%s", text, options->is_json || options->is_watching ? "\n" : "");
    free(text);
    return fflush(stdout) == 0;
}

/// Waits until the next look is due; true when the user wants no more.
static bool wait_or_end(const sigset_t *ends)
{
    struct timespec interval = {.tv_sec = INTERVAL_MS / 1000,
                                .tv_nsec = INTERVAL_MS % 1000 * 1000000};
    return sigtimedwait(ends, NULL, &interval) > 0;
}

/// Shows the clusters again and again until none is left, the output is closed or Ctrl-C is
/// pressed.
static int watch(const struct options *options, json_t *clusters)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    // Taken between two looks: the terminal is left at the beginning of a line.
    sigprocmask(SIG_BLOCK, &ends, NULL);
    if (!options->is_json && isatty(STDOUT_FILENO))
        fputs("\033[2J", stdout);
    for (;;) {
        bool is_shown = show(options, clusters);
        json_decref(clusters);
        if (!is_shown)
            return 1;
        if (wait_or_end(&ends))
            return 0;
        clusters = query();
        if (!clusters)
            return 1;
        if (json_array_size(clusters) == 0) {
            json_decref(clusters);
            return say_none(options);
        }
    }
}

int run_status(int argc, char **argv)
{
    struct options options = {0};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options.is_json = true;
        else if (strcmp(argv[i], "--watch") == 0)
            options.is_watching = true;
        else
            return refuse_usage("status does not know \"%s\"", argv[i]);
    }
    json_t *clusters = query();
    if (!clusters)
        return 1;
    if (json_array_size(clusters) == 0) {
        json_decref(clusters);
        return say_none(&options);
    }
    if (options.is_watching)
        return watch(&options, clusters);
    bool is_shown = show(&options, clusters);
    json_decref(clusters);
    return is_shown ? 0 : 1;
}
