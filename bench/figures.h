// SPDX-License-Identifier: Apache-2.0
/// Times, medians and lines like those of harness.py: what all benches in C share.
#ifndef TFOS_BENCH_FIGURES_H
#define TFOS_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/status.h>
#include <time.h>

static inline void check(enum tfos_status status, const struct tfos_error *err)
{
    if (status < 0) {
        fprintf(stderr, "bench: %s: %s\n", tfos_status_name(status), err->message);
        exit(1);
    }
}

static inline double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/// What is measured and what it is compared with.
struct figure {
    const char *bench;
    const char *name; ///< of the case
    const char *unit; ///< that ends in "/s" where more is better, else less is
    const char *anchor_name;
    double goal; ///< 0: none
};

static inline void print_line(const struct figure *figure, double ours, double anchor)
{
    size_t size = strlen(figure->unit);
    bool is_rate = size > 2 && strcmp(figure->unit + size - 2, "/s") == 0;
    double ratio = is_rate ? ours / anchor : anchor / ours;
    char verdict[64] = "null, \"met\": null";

    if (figure->goal > 0)
        snprintf(verdict, sizeof(verdict), "%g, \"met\": %s", figure->goal,
                 ratio >= figure->goal ? "true" : "false");
    printf("{\"bench\": \"%s\", \"case\": \"%s\", \"unit\": \"%s\", \"ours\": %.4g, "
           "\"anchor\": %.4g, \"anchor_name\": \"%s\", \"ratio\": %.3f, \"goal\": %s}\n",
           figure->bench, figure->name, figure->unit, ours, anchor, figure->anchor_name, ratio,
           verdict);
}

#endif
