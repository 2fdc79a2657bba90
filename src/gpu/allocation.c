// SPDX-License-Identifier: Apache-2.0
// Choosing GPUs and taking them. All that is decided about a GPU is decided under the lock of the
// folder, from a list of the driver's that was made under it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "gpu/gpu.h"
#include "gpu/share_file.h"

#define SEPARATORS ", "
#define RETRY_MS 200
#define LOCK_TIMEOUT_MS 30000
#define WORDS_SIZE 700
#define HOLDERS_NAMED 4

/// A GPU that was taken.
struct item {
    struct tfos_gpu gpu; ///< without its processes; only the id where it is not known
    bool is_known;       ///< it is in the driver's list
    struct tfos__gpu_share share;
};

struct tfos_gpu_allocation {
    int count;
    char *ids;          ///< owned
    struct item *items; ///< owned
};

/// A GPU that may be taken, while the folder is locked.
struct candidate {
    const struct tfos_gpu *gpu; ///< borrowed from the list
    struct tfos__gpu_share share;
    int taken; ///< units that others hold
    bool is_usable, is_chosen;
};

struct search {
    const struct tfos_gpu_request *request; ///< borrowed
    int units;                              ///< of each GPU
    char folder[TFOS__GPU_PATH_SIZE];
    struct tfos_gpu *gpus; ///< owned
    size_t gpu_count;
    struct candidate *candidates; ///< owned
    size_t count;                 ///< of the candidates
};

// ---- the allocation

void tfos_gpu_allocation_close(struct tfos_gpu_allocation *allocation)
{
    if (!allocation)
        return;
    for (int i = 0; i < allocation->count; i++)
        tfos__gpu_share_close(&allocation->items[i].share);
    tfos__free(allocation->items);
    tfos__free(allocation->ids);
    tfos__free(allocation);
}

static struct tfos_gpu_allocation *new_allocation(int capacity)
{
    struct tfos_gpu_allocation *allocation = tfos__alloc(1, sizeof(*allocation));
    if (!allocation)
        return NULL;
    allocation->items = tfos__alloc((size_t)capacity, sizeof(*allocation->items));
    allocation->ids = tfos__strdup("");
    if (allocation->items && allocation->ids)
        return allocation;
    tfos_gpu_allocation_close(allocation);
    return NULL;
}

/// Adds a GPU, whose share the allocation takes over.
static enum tfos_status add(struct tfos_gpu_allocation *allocation, const struct tfos_gpu *gpu,
                            bool is_known, struct tfos__gpu_share share, struct tfos_error *err)
{
    struct item *item = &allocation->items[allocation->count++];
    *item = (struct item){.gpu = *gpu, .is_known = is_known, .share = share};
    item->gpu.processes = NULL;
    item->gpu.process_count = 0;
    char *ids = tfos__format("%s%s%s", allocation->ids, allocation->ids[0] ? "," : "", gpu->id);
    if (!ids)
        return tfos__no_memory(err, "gpu", "the names of GPUs");
    tfos__free(allocation->ids);
    allocation->ids = ids;
    return TFOS_OK;
}

const char *tfos_gpu_allocation_ids(const struct tfos_gpu_allocation *allocation)
{
    return allocation->ids;
}

int tfos__gpu_allocation_count(const struct tfos_gpu_allocation *allocation)
{
    return allocation->count;
}

int64_t tfos__gpu_allocation_memory(const struct tfos_gpu_allocation *allocation, int place)
{
    const struct item *item = &allocation->items[place];
    int units = item->share.units > 0 ? item->share.units : TFOS__GPU_UNITS;
    if (!item->is_known || item->gpu.memory_total < 0)
        return -1;
    return item->gpu.memory_total / TFOS__GPU_UNITS * units;
}

int tfos__gpu_allocation_fd(const struct tfos_gpu_allocation *allocation, int place)
{
    return allocation->items[place].share.fd;
}

void tfos__gpu_allocation_rename(struct tfos_gpu_allocation *allocation, const char *owner)
{
    for (int i = 0; i < allocation->count; i++)
        if (allocation->items[i].share.fd >= 0)
            tfos__gpu_share_rename(&allocation->items[i].share, owner);
}

const struct tfos_gpu *tfos__gpu_allocation_gpu(const struct tfos_gpu_allocation *allocation,
                                                int place)
{
    const struct item *item = &allocation->items[place];
    return item->is_known ? &item->gpu : NULL;
}

// ---- the candidates

/// The next name of a list, "" at its end.
static size_t next_name(const char **names)
{
    *names += strspn(*names, SEPARATORS);
    return strcspn(*names, SEPARATORS);
}

static bool is_named_in(const struct tfos_gpu *gpu, const char *names)
{
    size_t size;
    for (; (size = next_name(&names)) > 0; names += size)
        if (tfos__gpu_is_named(gpu, names, size))
            return true;
    return false;
}

/// The names that the search keeps to; NULL: none.
static const char *limits_of(const struct tfos_gpu_request *request)
{
    return request->candidates ? request->candidates : getenv("CUDA_VISIBLE_DEVICES");
}

/// Whether the share that is wanted can be had. Where no share of ours is taken, what other
/// programs use of the memory must leave room for it.
static bool is_usable(const struct search *search, const struct candidate *candidate)
{
    const struct tfos_gpu *gpu = candidate->gpu;
    if (candidate->taken + search->units > TFOS__GPU_UNITS)
        return false;
    if (gpu->is_free || candidate->taken > 0)
        return true;
    return search->units < TFOS__GPU_UNITS && gpu->memory_total > 0 &&
           gpu->memory_used <=
               gpu->memory_total / TFOS__GPU_UNITS * (TFOS__GPU_UNITS - search->units);
}

static void clear_search(struct search *search)
{
    for (size_t i = 0; i < search->count; i++)
        tfos__gpu_share_close(&search->candidates[i].share);
    tfos__free(search->candidates);
    tfos__free(search->gpus);
    search->candidates = NULL;
    search->gpus = NULL;
    search->count = search->gpu_count = 0;
}

static enum tfos_status find_candidates(struct search *search, struct tfos_error *err)
{
    const char *names = limits_of(search->request);
    TFOS__TRY(tfos_gpu_list(&search->gpus, &search->gpu_count, err));
    search->candidates = tfos__alloc(search->gpu_count, sizeof(*search->candidates));
    if (!search->candidates)
        return tfos__no_memory(err, "gpu", "the list of GPUs");
    for (size_t i = 0; i < search->gpu_count; i++) {
        const struct tfos_gpu *gpu = &search->gpus[i];
        if (gpu->fault[0] || gpu->is_divided || (names && !is_named_in(gpu, names)))
            continue;
        struct candidate *candidate = &search->candidates[search->count];
        *candidate = (struct candidate){.gpu = gpu};
        TFOS__TRY(tfos__gpu_share_open(search->folder, gpu->uuid[0] ? gpu->uuid : gpu->id,
                                       &candidate->share, err));
        search->count++;
        candidate->taken = tfos__gpu_share_count(&candidate->share);
        candidate->is_usable = is_usable(search, candidate);
    }
    return TFOS_OK;
}

// ---- the words of a failure

static void describe_use(struct tfos__bounded_text *words, const struct candidate *candidate)
{
    struct tfos_gpu_holder holders[HOLDERS_NAMED];
    const struct tfos_gpu *gpu = candidate->gpu;
    size_t count = tfos__gpu_share_holders(&candidate->share, holders, HOLDERS_NAMED);
    tfos__bounded_text_append(words, "; GPU %s ", gpu->id);
    for (size_t i = 0; i < count; i++)
        tfos__bounded_text_append(words, "%s%.1f %% by process %lld%s%s%s",
                                  i ? ", " : "is held: ", holders[i].share / 10.0,
                                  (long long)holders[i].pid, holders[i].owner[0] ? " (" : "",
                                  holders[i].owner, holders[i].owner[0] ? ")" : "");
    if (count == 0 && gpu->process_count > 0)
        tfos__bounded_text_append(words, "is used by process %lld",
                                  (long long)gpu->processes[0].pid);
    else if (count == 0)
        tfos__bounded_text_append(words, "is in use");
}

static enum tfos_status fail_busy(const struct search *search, size_t usable,
                                  struct tfos_error *err)
{
    char text[WORDS_SIZE] = "";
    struct tfos__bounded_text words = {text, sizeof(text), 0};
    for (size_t i = 0; i < search->count; i++)
        if (!search->candidates[i].is_usable)
            describe_use(&words, &search->candidates[i]);
    return tfos__fail(err, TFOS_BUSY, "gpu: %d wanted, %zu free%s (tfos gpu shows who has what)",
                      search->request->count, usable, text);
}

static enum tfos_status fail_few(const struct search *search, struct tfos_error *err)
{
    char text[WORDS_SIZE] = "";
    struct tfos__bounded_text words = {text, sizeof(text), 0};
    const char *names = limits_of(search->request);
    for (size_t i = 0; i < search->gpu_count; i++)
        if (search->gpus[i].fault[0])
            tfos__bounded_text_append(&words, "; GPU %s does not answer: %s", search->gpus[i].id,
                                      search->gpus[i].fault);
    if (names && !search->request->candidates)
        tfos__bounded_text_append(&words, "; CUDA_VISIBLE_DEVICES is \"%.100s\"", names);
    else if (names)
        tfos__bounded_text_append(&words, "; only %.100s may be taken", names);
    return tfos__fail(err, TFOS_NOT_FOUND, "gpu: %d wanted, this machine has %zu%s",
                      search->request->count, search->count, text);
}

// ---- the choice

static int link_of(const struct tfos_gpu *one, const struct tfos_gpu *other)
{
    bool is_known = other->index < TFOS_GPU_LINK_LIMIT;
    return is_known ? (int)one->links[other->index] : (int)TFOS_GPU_LINK_UNKNOWN;
}

/// What it costs to add a GPU to those that are chosen: a share makes a GPU that was whole one that
/// is not, programs of others do not keep to shares, and connections are slow.
static int cost_of(const struct search *search, const struct candidate *candidate)
{
    int cost = search->units < TFOS__GPU_UNITS ? TFOS__GPU_UNITS - candidate->taken : 0;
    if (!candidate->gpu->is_free && candidate->taken == 0)
        cost += TFOS__GPU_UNITS;
    for (size_t i = 0; i < search->count; i++)
        if (search->candidates[i].is_chosen)
            cost += link_of(candidate->gpu, search->candidates[i].gpu);
    return cost;
}

/// The usable candidate at `place`, counted around from the one that is preferred.
static struct candidate *usable_at(const struct search *search, size_t usable, size_t place)
{
    size_t first = search->request->preferred > 0 ? (size_t)search->request->preferred : 0;
    size_t skipped = (first + place) % usable;
    for (size_t i = 0; i < search->count; i++)
        if (search->candidates[i].is_usable && skipped-- == 0)
            return &search->candidates[i];
    return NULL;
}

/// Chooses from the one at `start` on, each time the cheapest; returns what it costs.
static int choose_from(const struct search *search, size_t usable, size_t start)
{
    int total = 0;
    for (size_t i = 0; i < search->count; i++)
        search->candidates[i].is_chosen = false;
    for (int chosen = 0; chosen < search->request->count; chosen++) {
        struct candidate *best = NULL;
        int best_cost = 0;
        for (size_t place = 0; place < usable; place++) {
            struct candidate *candidate = usable_at(search, usable, start + place);
            if (!candidate || candidate->is_chosen)
                continue;
            int cost = cost_of(search, candidate);
            if (!best || cost < best_cost) {
                best = candidate;
                best_cost = cost;
            }
            if (chosen == 0)
                break; // the one at `start`
        }
        if (best) {
            best->is_chosen = true;
            total += best_cost;
        }
    }
    return total;
}

static void choose(const struct search *search, size_t usable)
{
    size_t best = 0;
    int best_cost = 0;
    for (size_t start = 0; start < usable; start++) {
        int cost = choose_from(search, usable, start);
        if (start == 0 || cost < best_cost) {
            best = start;
            best_cost = cost;
        }
    }
    choose_from(search, usable, best);
}

static enum tfos_status take_chosen(struct search *search, struct tfos_gpu_allocation *allocation,
                                    struct tfos_error *err)
{
    for (size_t i = 0; i < search->count; i++) {
        struct candidate *candidate = &search->candidates[i];
        if (!candidate->is_chosen)
            continue;
        TFOS__TRY(
            tfos__gpu_share_take(&candidate->share, search->units, search->request->owner, err));
        struct tfos__gpu_share share = candidate->share;
        candidate->share.fd = -1;
        TFOS__TRY(add(allocation, candidate->gpu, true, share, err));
    }
    return TFOS_OK;
}

/// Takes what is wanted, with the folder locked.
static enum tfos_status take_searched(struct search *search, struct tfos_gpu_allocation *allocation,
                                      struct tfos_error *err)
{
    size_t usable = 0;
    TFOS__TRY(find_candidates(search, err));
    for (size_t i = 0; i < search->count; i++)
        usable += search->candidates[i].is_usable;
    if (search->count < (size_t)search->request->count)
        return fail_few(search, err);
    if (usable < (size_t)search->request->count)
        return fail_busy(search, usable, err);
    choose(search, usable);
    return take_chosen(search, allocation, err);
}

/// Takes what a resource manager gave, whoever holds it: a share is taken only for others to see.
static enum tfos_status take_assigned(struct search *search, struct tfos_gpu_allocation *allocation,
                                      struct tfos_error *err)
{
    const char *names = search->request->candidates;
    size_t size;
    if (tfos_gpu_list(&search->gpus, &search->gpu_count, NULL) < 0)
        search->gpu_count = 0; // the names are good for CUDA all the same
    for (; (size = next_name(&names)) > 0 && allocation->count < search->request->count;
         names += size) {
        struct tfos_gpu unknown = {0};
        struct tfos__gpu_share share = {.fd = -1};
        const struct tfos_gpu *gpu = NULL;
        for (size_t i = 0; i < search->gpu_count && !gpu; i++)
            if (tfos__gpu_is_named(&search->gpus[i], names, size))
                gpu = &search->gpus[i];
        snprintf(unknown.id, sizeof(unknown.id), "%.*s", (int)size, names);
        if (gpu && gpu->uuid[0] &&
            tfos__gpu_share_open(search->folder, gpu->uuid, &share, NULL) == TFOS_OK &&
            tfos__gpu_share_take(&share, search->units, search->request->owner, NULL) < 0)
            tfos__gpu_share_close(&share);
        TFOS__TRY(add(allocation, gpu ? gpu : &unknown, gpu != NULL, share, err));
    }
    if (allocation->count < search->request->count)
        return tfos__fail(err, TFOS_NOT_FOUND, "gpu: %d wanted, but only \"%s\" was assigned",
                          search->request->count, search->request->candidates);
    return TFOS_OK;
}

// ---- the request

static enum tfos_status try_once(struct search *search, struct tfos__wait *wait,
                                 struct tfos_gpu_allocation **out, struct tfos_error *err)
{
    int lock;
    struct tfos_gpu_allocation *allocation = new_allocation(search->request->count);
    if (!allocation)
        return tfos__no_memory(err, "gpu", "an allocation");
    struct tfos__wait lock_wait = {.deadline = tfos__deadline(LOCK_TIMEOUT_MS),
                                   .caller = wait->caller};
    enum tfos_status status = tfos__gpu_share_lock(search->folder, &lock_wait, &lock, err);
    if (status == TFOS_OK) {
        status = search->request->is_assigned ? take_assigned(search, allocation, err)
                                              : take_searched(search, allocation, err);
        close(lock);
    }
    clear_search(search);
    if (status == TFOS_OK)
        *out = allocation;
    else
        tfos_gpu_allocation_close(allocation);
    return status;
}

static enum tfos_status check(const struct tfos_gpu_request *request, struct tfos_error *err)
{
    if (request->count < 1)
        return tfos__fail(err, TFOS_INVALID, "gpu: the number of GPUs must be 1 or more, not %d",
                          request->count);
    if (!(request->fraction >= 0 && request->fraction <= 1))
        return tfos__fail(err, TFOS_INVALID,
                          "gpu: the fraction of a GPU must be above 0 and at most 1, not %g",
                          request->fraction);
    if (request->is_assigned && !request->candidates)
        return tfos__fail(err, TFOS_INVALID, "gpu: no GPU was assigned");
    return TFOS_OK;
}

/// Thousandths, rounded down so that n shares of 1/n fit.
static int units_of(double fraction)
{
    int units = (int)(fraction * TFOS__GPU_UNITS + 1e-6);
    if (fraction <= 0)
        return TFOS__GPU_UNITS;
    return units < 1 ? 1 : units;
}

enum tfos_status tfos_gpu_allocate(const struct tfos_gpu_request *request,
                                   const struct tfos_wait *wait, struct tfos_gpu_allocation **out,
                                   struct tfos_error *err)
{
    TFOS__TRY(check(request, err));
    struct search search = {.request = request, .units = units_of(request->fraction)};
    TFOS__TRY(tfos__gpu_share_folder(request->directory, search.folder, err));
    struct tfos__wait until = tfos__wait_begin(wait, 1);
    for (;;) {
        enum tfos_status status = try_once(&search, &until, out, err);
        if (status != TFOS_BUSY || tfos__remaining_ms(until.deadline) == 0)
            return status;
        int64_t again = tfos__deadline(RETRY_MS);
        while (tfos__remaining_ms(again) != 0 && tfos__remaining_ms(until.deadline) != 0) {
            TFOS__TRY(tfos__wait_check(&until, err));
            usleep(10000);
        }
    }
}

enum tfos_status tfos_gpu_holders(const char *directory, const char *uuid,
                                  struct tfos_gpu_holder *holders, size_t capacity, size_t *count,
                                  struct tfos_error *err)
{
    char folder[TFOS__GPU_PATH_SIZE];
    struct tfos__gpu_share share;
    TFOS__TRY(tfos__gpu_share_folder(directory, folder, err));
    TFOS__TRY(tfos__gpu_share_open(folder, uuid, &share, err));
    *count = tfos__gpu_share_holders(&share, holders, capacity);
    tfos__gpu_share_close(&share);
    return TFOS_OK;
}
