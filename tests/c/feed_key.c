// SPDX-License-Identifier: Apache-2.0
// The cluster's key stays in memory where it is needed, and nowhere else: what is freed and what
// stacks have left behind is looked at, too.
#include <fcntl.h>
#include <inttypes.h>

#include "base/channel.h"
#include "feed_task.h"

#define REGION_LIMIT (UINT64_C(64) << 20) // larger ones are the sanitizers' own
#define CHUNK (1 << 20)
#define WAYS 2                    // over shared memory and over TCP
#define HALF (TFOS__KEY_SIZE / 2) // both are the same; over the first an allocator may have written

// The bytes of the key are nowhere in this program: each is made when it is compared.
static bool is_key_half(const unsigned char *data)
{
    const char *digits = TEST_KEY;

    for (int i = 0; i < HALF; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        if (data[i] != (unsigned char)strtoul(pair, NULL, 16))
            return false;
    }
    return true;
}

static int count_in_region(int memory, uint64_t begin, uint64_t end, unsigned char *chunk)
{
    int count = 0;

    for (uint64_t at = begin; at < end; at += CHUNK - HALF) {
        size_t wanted = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t size = pread(memory, chunk, wanted, (off_t)at);
        for (ssize_t i = 0; i + HALF <= size; i += 8)
            count += is_key_half(chunk + i);
    }
    return count;
}

// How often half of the key is in this process's memory.
static int count_keys(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    unsigned char *chunk = malloc(CHUNK);
    char line[512];
    int count = 0;

    assert_true(maps && memory >= 0 && chunk);
    while (fgets(line, sizeof(line), maps)) {
        uint64_t begin = 0, end = 0;
        char mode[5] = "";
        bool is_chunk = false;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, mode) == 3)
            is_chunk = (uintptr_t)chunk >= begin && (uintptr_t)chunk < end;
        if (strcmp(mode, "rw-p") == 0 && end - begin <= REGION_LIMIT && !is_chunk)
            count += count_in_region(memory, begin, end, chunk);
    }
    free(chunk);
    close(memory);
    fclose(maps);
    return count;
}

// A writer in a thread that stays when it is done, so that its stack stays as it was left.
struct lingering {
    struct task task;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_fed, may_close, is_closed, may_end;
    struct tfos__feed_writer *writer;
};

static void await(struct lingering *lingering, const bool *flag)
{
    while (!*flag)
        pthread_cond_wait(&lingering->changed, &lingering->mutex);
}

static void *linger(void *argument)
{
    struct lingering *lingering = argument;
    struct tfos_error err;

    pthread_mutex_lock(&lingering->mutex);
    assert_done(writer_open(&lingering->task.options, &lingering->writer, &err));
    assert_done(append_rows(lingering->writer, 0, 10, 0, &err));
    lingering->is_fed = true;
    pthread_cond_broadcast(&lingering->changed);
    await(lingering, &lingering->may_close);
    tfos__feed_writer_close(lingering->writer);
    lingering->is_closed = true;
    pthread_cond_broadcast(&lingering->changed);
    await(lingering, &lingering->may_end);
    pthread_mutex_unlock(&lingering->mutex);
    return NULL;
}

static void advance(struct lingering *lingering, bool *may, const bool *has)
{
    pthread_mutex_lock(&lingering->mutex);
    if (may)
        *may = true;
    pthread_cond_broadcast(&lingering->changed);
    if (has)
        await(lingering, has);
    pthread_mutex_unlock(&lingering->mutex);
}

static void only_the_host_keeps_the_key(void **state)
{
    struct node node;
    struct lingering lingering[WAYS];

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    const char *const addresses[WAYS] = {NULL, node.address};
    int kept = count_keys();
    assert_in_range(kept, 1, 2);
    for (int i = 0; i < WAYS; i++) {
        lingering[i] = (struct lingering){.mutex = PTHREAD_MUTEX_INITIALIZER,
                                          .changed = PTHREAD_COND_INITIALIZER};
        task_init(&lingering[i].task, &node, i, 10);
        if (addresses[i])
            lingering[i].task.options.target.socket_name = NULL;
        lingering[i].task.options.target.address = addresses[i];
        assert_int_equal(pthread_create(&lingering[i].thread, NULL, linger, &lingering[i]), 0);
        advance(&lingering[i], NULL, &lingering[i].is_fed);
        assert_int_equal(count_keys(), kept);
        advance(&lingering[i], &lingering[i].may_close, &lingering[i].is_closed);
    }
    assert_int_equal(count_keys(), kept);
    node_close(&node);
    assert_int_equal(count_keys(), 0);
    for (int i = 0; i < WAYS; i++) {
        advance(&lingering[i], &lingering[i].may_end, NULL);
        pthread_join(lingering[i].thread, NULL);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(only_the_host_keeps_the_key),
};

TEST_MAIN(cases)
