// SPDX-License-Identifier: Apache-2.0
// The operations on parameters. But for the first and the last, each rank calls as many as it
// likes.
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "collective/operation_call.h"
#include "collective/remote_parameters.h"

/// A call that has to do with parameters.
struct exchange {
    struct tfos_collective *group;
    const char *name;
    struct tfos__collective_vector vector;
    struct tfos__collective_request request;
    int64_t staleness;
};

/// What rank 0 tells of the parameters that it has made.
struct announcement {
    int64_t count, staleness;
    int fd;
    char token[TFOS__COLLECTIVE_TOKEN_SIZE];
};

static enum tfos_status init_exchange(struct exchange *exchange, struct tfos_collective *group,
                                      const char *name, const struct tfos_collective_span *spans,
                                      int64_t span_count, bool is_opening, struct tfos_error *err)
{
    *exchange = (struct exchange){.group = group, .name = name};
    TFOS__TRY(tfos__collective_call_check(group, name, TFOS_DTYPE_FLOAT32, false, 0, err));
    if (!group->roster.has_parameters)
        return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                            "the group was opened without parameters", err);
    if (is_opening == (group->pulled != NULL))
        return tfos__collective_call_refuse(
            group, TFOS_INVALID, name,
            is_opening ? "parameters are open" : "no parameters are open", err);
    TFOS__TRY(
        tfos__collective_vector_init(&exchange->vector, spans, span_count, sizeof(float), err));
    if (is_opening || exchange->vector.count == group->parameters.count)
        return TFOS_OK;
    tfos__collective_vector_clear(&exchange->vector);
    return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                        "there are not as many elements as parameters", err);
}

/// Runs `work` as an operation.
static enum tfos_status
run(struct exchange *exchange,
    enum tfos_status (*work)(struct exchange *exchange, struct tfos__collective_call *call,
                             struct announcement *announcement, struct tfos_error *err),
    struct announcement *announcement, struct tfos_error *err)
{
    struct tfos__collective_call call;
    struct tfos_error cause;
    struct tfos__collective_descriptor descriptor = tfos__collective_call_describe(
        exchange->name, TFOS__COLLECTIVE_PUSH_PULL, TFOS_DTYPE_FLOAT32, exchange->vector.count);
    TFOS__TRY(tfos__collective_call_begin(&call, exchange->group, &descriptor, err));
    enum tfos_status status = tfos__collective_failure_check(
        call.operation.failure, call.operation.descriptor.sequence, &cause);
    if (status == TFOS_OK)
        status = work(exchange, &call, announcement, &cause);
    return tfos__collective_call_end(&call, status, &cause, err);
}

static enum tfos_status make_parameters(struct exchange *exchange,
                                        struct tfos__collective_call *call,
                                        struct announcement *announcement, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    int64_t count = exchange->vector.count;
    (void)call;
    group->pulled = tfos__alloc((size_t)count, sizeof(*group->pulled));
    if (!group->pulled)
        return tfos__no_memory(err, "collective", "parameters");
    group->parameters =
        (struct tfos__collective_parameters){.count = count,
                                             .staleness = exchange->staleness,
                                             .fd = -1,
                                             .roster = &group->roster,
                                             .failure = &group->failure,
                                             .stall_timeout_ms = group->stall_timeout_ms};
    TFOS__TRY(tfos__collective_parameters_alloc(&group->parameters, err));
    if (group->rank != 0)
        return TFOS_OK;
    TFOS__TRY(tfos__collective_parameters_init(&group->parameters, announcement->token, err));
    announcement->count = count;
    announcement->staleness = exchange->staleness;
    announcement->fd = group->parameters.fd;
    return TFOS_OK;
}

/// Joins the parameters of rank 0, or fills and serves these.
static enum tfos_status join_parameters(struct exchange *exchange,
                                        struct tfos__collective_call *call,
                                        struct announcement *announcement, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    struct tfos__collective_parameters *parameters = &group->parameters;
    const struct tfos__collective_vector *vector = &exchange->vector;
    (void)call;
    if (announcement->count != parameters->count ||
        announcement->staleness != parameters->staleness)
        return tfos__fail(err, TFOS_INVALID,
                          "the programs of the ranks differ: %s has %lld parameters and a "
                          "staleness of %lld where %s has %lld and %lld",
                          group->roster.members[0].label, (long long)announcement->count,
                          (long long)announcement->staleness,
                          group->roster.members[group->rank].label, (long long)parameters->count,
                          (long long)parameters->staleness);
    if (group->rank != 0)
        return tfos__collective_roster_is_remote(&group->roster, group->rank)
                   ? TFOS_OK
                   : tfos__collective_parameters_map(parameters, announcement->fd,
                                                     announcement->token, err);
    tfos__collective_vector_read(vector, 0, vector->count, parameters->values);
    return tfos__collective_parameter_server_start(&group->server, parameters, &group->links, err);
}

static float share_of(const struct tfos_collective *group)
{
    return 1.0F / (float)group->size;
}

static enum tfos_status push_here(const struct exchange *exchange, struct tfos_error *err)
{
    const struct tfos_collective *group = exchange->group;
    struct tfos__collective_parameters *parameters = &exchange->group->parameters;
    struct tfos__collective_piece *piece = parameters->piece;
    int64_t count = tfos__collective_piece_count(parameters->count);
    for (int64_t number = 0; number < count; number++) {
        tfos__collective_piece_init(piece, number, parameters->count);
        tfos__collective_piece_subtract(piece, &exchange->vector, group->pulled, share_of(group));
        TFOS__TRY(tfos__collective_parameters_push(parameters, piece, err));
    }
    return TFOS_OK;
}

static enum tfos_status pull_here(const struct exchange *exchange, struct tfos_error *err)
{
    struct tfos__collective_parameters *parameters = &exchange->group->parameters;
    struct tfos__collective_piece *piece = parameters->piece;
    int64_t count = tfos__collective_piece_count(parameters->count);
    for (int64_t number = 0; number < count; number++) {
        tfos__collective_piece_init(piece, number, parameters->count);
        TFOS__TRY(tfos__collective_parameters_pull(parameters, piece, parameters->marks,
                                                   exchange->group->pulled, err));
    }
    return TFOS_OK;
}

/// Asks rank 0, on another host.
static enum tfos_status exchange_there(const struct exchange *exchange, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    const struct tfos__collective_replica replica = {&exchange->vector, group->pulled,
                                                     share_of(group)};
    return tfos__collective_parameters_ask(&group->parameters, group->links.parameters[0].channel,
                                           &exchange->request, &replica, &group->met_us, err);
}

/// Exchanges in shared memory.
static enum tfos_status exchange_here(const struct exchange *exchange,
                                      struct tfos__collective_call *call, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    struct tfos__collective_parameters *parameters = &group->parameters;
    const struct tfos__collective_request *request = &exchange->request;
    int *blocker = &call->operation.last_rank;
    switch (request->kind) {
    case TFOS__COLLECTIVE_PUSH:
        TFOS__TRY(push_here(exchange, err));
        tfos__collective_parameters_leave(parameters, group->rank, request->steps);
        return TFOS_OK;
    case TFOS__COLLECTIVE_AWAIT_ROWS:
    case TFOS__COLLECTIVE_GOT_ROWS:
        tfos__collective_parameters_await_rows(parameters, group->rank,
                                               request->kind == TFOS__COLLECTIVE_AWAIT_ROWS);
        return TFOS_OK;
    case TFOS__COLLECTIVE_PULL:
        TFOS__TRY(tfos__collective_parameters_enter(parameters, group->rank, request->steps,
                                                    blocker, err));
        break;
    case TFOS__COLLECTIVE_PULL_LAST:
        TFOS__TRY(tfos__collective_parameters_end(parameters, group->rank, blocker, err));
        break;
    }
    atomic_store(&group->met_us, tfos__now_us());
    return pull_here(exchange, err);
}

/// Counts a push, of which a rank of another host knows by its next pull how stale it was.
static void count(const struct exchange *exchange)
{
    struct tfos_collective *group = exchange->group;
    const struct tfos__collective_parameters *parameters = &group->parameters;
    int64_t steps = exchange->request.kind == TFOS__COLLECTIVE_PUSH ? exchange->request.steps : 0;
    pthread_mutex_lock(&group->mutex);
    group->figures.pushed_steps += steps;
    group->figures.push_count += steps > 0 ? 1 : 0;
    group->figures.stale_steps = parameters->head
                                     ? atomic_load(&parameters->head->stale_steps[group->rank])
                                     : parameters->stale_steps;
    pthread_mutex_unlock(&group->mutex);
}

static enum tfos_status exchange_values(struct exchange *exchange,
                                        struct tfos__collective_call *call,
                                        struct announcement *unused, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    enum tfos__collective_request_kind kind = exchange->request.kind;
    bool is_pull = kind == TFOS__COLLECTIVE_PULL || kind == TFOS__COLLECTIVE_PULL_LAST;
    (void)unused;
    if (!is_pull) // nothing else waits for other ranks
        atomic_store(&group->met_us, call->begin_us);
    if (kind == TFOS__COLLECTIVE_PUSH) // or a wait for data that has ended goes on for ever
        tfos_collective_mark_step(group, TFOS_COLLECTIVE_STEPS_END);
    TFOS__TRY(tfos__collective_roster_is_remote(&group->roster, group->rank)
                  ? exchange_there(exchange, err)
                  : exchange_here(exchange, call, err));
    call->operation.wait_us = atomic_load(&group->met_us) - call->begin_us;
    call->operation.blocked_us = call->operation.wait_us;
    if (is_pull)
        tfos__collective_vector_write(&exchange->vector, 0, exchange->vector.count, group->pulled);
    if (kind <= TFOS__COLLECTIVE_PULL_LAST)
        group->has_pulled = kind == TFOS__COLLECTIVE_PULL;
    count(exchange);
    return TFOS_OK;
}

static void begin_figures(struct tfos_collective *group, int64_t staleness)
{
    struct tfos_collective_figures *figures = &group->figures;
    pthread_mutex_lock(&group->mutex);
    figures->staleness = staleness;
    figures->pushed_steps = figures->push_count = figures->stale_steps = 0;
    pthread_mutex_unlock(&group->mutex);
}

enum tfos_status tfos_collective_open_parameters(struct tfos_collective *group, const char *name,
                                                 const struct tfos_collective_span *spans,
                                                 int64_t span_count, int64_t staleness,
                                                 struct tfos_error *err)
{
    struct exchange exchange;
    struct announcement announcement = {0};
    const struct tfos_collective_span span = {&announcement, sizeof(announcement)};
    if (staleness < 1 || staleness > INT32_MAX)
        return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                            "the staleness is from 1 to 2147483647", err);
    TFOS__TRY(init_exchange(&exchange, group, name, spans, span_count, true, err));
    exchange.staleness = staleness;
    begin_figures(group, staleness);
    enum tfos_status status = run(&exchange, make_parameters, &announcement, err);
    if (status == TFOS_OK)
        status = tfos_collective_broadcast(group, name, &span, 1, TFOS_DTYPE_UINT8, 0, err);
    if (status == TFOS_OK)
        status = run(&exchange, join_parameters, &announcement, err);
    if (status == TFOS_OK) // none goes on before all have joined
        status =
            tfos_collective_broadcast(group, name, spans, span_count, TFOS_DTYPE_FLOAT32, 0, err);
    if (status == TFOS_OK) // the first pull has what others have changed by then
        tfos__collective_vector_read(&exchange.vector, 0, exchange.vector.count, group->pulled);
    tfos__collective_vector_clear(&exchange.vector);
    return status;
}

/// Pulls or pushes.
static enum tfos_status exchange_steps(struct tfos_collective *group, const char *name,
                                       const struct tfos_collective_span *spans, int64_t span_count,
                                       enum tfos__collective_request_kind kind, int64_t steps,
                                       struct tfos_error *err)
{
    struct exchange exchange;
    TFOS__TRY(init_exchange(&exchange, group, name, spans, span_count, false, err));
    exchange.request = (struct tfos__collective_request){kind, steps};
    enum tfos_status status;
    if (steps < (kind == TFOS__COLLECTIVE_PULL) || steps > group->parameters.staleness)
        status = tfos__collective_call_refuse(
            group, TFOS_INVALID, name, "there are more steps than the staleness, or too few", err);
    else if (group->has_pulled == (kind == TFOS__COLLECTIVE_PULL))
        status = tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                              "pulls and pushes come in turns", err);
    else
        status = run(&exchange, exchange_values, NULL, err);
    tfos__collective_vector_clear(&exchange.vector);
    return status;
}

enum tfos_status tfos_collective_pull_parameters(struct tfos_collective *group, const char *name,
                                                 const struct tfos_collective_span *spans,
                                                 int64_t span_count, int64_t steps,
                                                 struct tfos_error *err)
{
    return exchange_steps(group, name, spans, span_count, TFOS__COLLECTIVE_PULL, steps, err);
}

enum tfos_status tfos_collective_push_parameters(struct tfos_collective *group, const char *name,
                                                 const struct tfos_collective_span *spans,
                                                 int64_t span_count, int64_t steps,
                                                 struct tfos_error *err)
{
    return exchange_steps(group, name, spans, span_count, TFOS__COLLECTIVE_PUSH, steps, err);
}

enum tfos_status tfos_collective_await_rows(struct tfos_collective *group, const char *name,
                                            bool is_waiting, struct tfos_error *err)
{
    struct exchange exchange = {.group = group, .name = name};
    TFOS__TRY(tfos__collective_call_check(group, name, TFOS_DTYPE_FLOAT32, false, 0, err));
    if (!group->pulled)
        return TFOS_OK;
    tfos_collective_mark_step(group, is_waiting ? TFOS_COLLECTIVE_STEP_WANTS_DATA
                                                : TFOS_COLLECTIVE_STEP_HAS_DATA);
    exchange.request.kind = is_waiting ? TFOS__COLLECTIVE_AWAIT_ROWS : TFOS__COLLECTIVE_GOT_ROWS;
    enum tfos_status status = run(&exchange, exchange_values, NULL, err);
    return status == TFOS_BUSY ? TFOS_OK : status; // who is in another operation is no straggler
}

enum tfos_status tfos_collective_close_parameters(struct tfos_collective *group, const char *name,
                                                  const struct tfos_collective_span *spans,
                                                  int64_t span_count, struct tfos_error *err)
{
    struct exchange exchange;
    TFOS__TRY(init_exchange(&exchange, group, name, spans, span_count, false, err));
    exchange.request.kind = TFOS__COLLECTIVE_PULL_LAST;
    pthread_mutex_lock(&group->mutex);
    group->figures.staleness = 0;
    pthread_mutex_unlock(&group->mutex);
    enum tfos_status status = run(&exchange, exchange_values, NULL, err);
    tfos__collective_vector_clear(&exchange.vector);
    TFOS__TRY(status);
    tfos__collective_parameter_server_stop(&group->server, false);
    TFOS__TRY(tfos_collective_barrier(group, name, err));
    tfos__collective_parameters_clear(&group->parameters);
    tfos__free(group->pulled);
    group->pulled = NULL;
    begin_figures(group, 0);
    return TFOS_OK;
}
