// SPDX-License-Identifier: Apache-2.0
// One look, or one after the other.
#include "watch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"

#define INTERVAL_MS 1000

/// The things as text, which the caller frees; NULL when out of memory.
static char *render(const struct watch_view *view, const json_t *things)
{
    char *text = NULL;
    size_t size = 0;
    if (view->is_json)
        return json_dumps(things, view->is_watching ? JSON_COMPACT : JSON_INDENT(2));
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    view->print(out, things);
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

/// Shows the things once; false when that is not possible.
static bool show(const struct watch_view *view, const json_t *things)
{
    char *text = render(view, things);
    if (!text)
        return false;
    if (view->is_watching && !view->is_json && isatty(STDOUT_FILENO))
        repaint(text);
    else
        printf("%s%s", text, view->is_json || view->is_watching ? "\n" : "");
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

static int print_none(const struct watch_view *view)
{
    puts(view->is_json ? "[]" : view->none);
    return 1;
}

/// Shows the things again and again until none is left, the output is closed or Ctrl-C is
/// pressed.
static int watch(const struct watch_view *view, json_t *things)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    // Taken between two looks: the terminal is left at the beginning of a line.
    sigprocmask(SIG_BLOCK, &ends, NULL);
    if (!view->is_json && isatty(STDOUT_FILENO))
        fputs("\033[2J", stdout);
    for (;;) {
        bool is_shown = show(view, things);
        json_decref(things);
        if (!is_shown)
            return 1;
        if (wait_or_end(&ends))
            return 0;
        things = view->query(view->context);
        if (!things)
            return 1;
        if (json_array_size(things) == 0) {
            json_decref(things);
            return print_none(view);
        }
    }
}

int watch_run(int argc, char **argv, struct watch_view *view)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            view->is_json = true;
        else if (strcmp(argv[i], "--watch") == 0)
            view->is_watching = true;
        else
            return refuse_usage("%s does not know \"%s\"", view->command, argv[i]);
    }
    json_t *things = view->query(view->context);
    if (!things)
        return 1;
    if (json_array_size(things) == 0) {
        json_decref(things);
        return print_none(view);
    }
    if (view->is_watching)
        return watch(view, things);
    bool is_shown = show(view, things);
    json_decref(things);
    return is_shown ? 0 : 1;
}
