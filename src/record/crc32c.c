// SPDX-License-Identifier: Apache-2.0
// CRC-32C, reflected: polynomial 0x82F63B78, register and result inverted. The way is chosen once,
// at run time, because one binary serves CPUs with and without the instruction.
#include "record/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>
#include <tfos/record.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define POLYNOMIAL 0x82F63B78u
#define MASK_DELTA 0xA282EAD8u
#define WORD_SIZE 8

static uint32_t tables[WORD_SIZE][256]; ///< [n]: of a byte with n zero bytes behind it
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;
static tfos__crc32c_update *chosen;
static pthread_once_t way_chosen = PTHREAD_ONCE_INIT;

static uint64_t load_word(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return le64toh(word);
}

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;
        for (int bit = 0; bit < 8; bit++)
            state = state >> 1 ^ (state & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = state;
    }
    for (int n = 1; n < WORD_SIZE; n++)
        for (int byte = 0; byte < 256; byte++)
            tables[n][byte] = tables[n - 1][byte] >> 8 ^ tables[0][tables[n - 1][byte] & 255];
}

uint32_t tfos__crc32c_by_tables(uint32_t state, const uint8_t *data, size_t size)
{
    pthread_once(&tables_made, make_tables);
    for (; size >= WORD_SIZE; data += WORD_SIZE, size -= WORD_SIZE) {
        uint64_t word = load_word(data) ^ state;
        state = 0;
        for (int n = 0; n < WORD_SIZE; n++)
            state ^= tables[WORD_SIZE - 1 - n][word >> 8 * n & 255];
    }
    for (; size > 0; data++, size--)
        state = state >> 8 ^ tables[0][(state ^ *data) & 255];
    return state;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t state,
                                                                 const uint8_t *data, size_t size)
{
    uint64_t wide = state;
    for (; size >= WORD_SIZE; data += WORD_SIZE, size -= WORD_SIZE)
        wide = _mm_crc32_u64(wide, load_word(data));
    state = (uint32_t)wide;
    for (; size > 0; data++, size--)
        state = _mm_crc32_u8(state, *data);
    return state;
}

tfos__crc32c_update *tfos__crc32c_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") ? by_instruction : NULL;
}

#elif defined(__aarch64__)

// By assembly: compilers offer the intrinsics only where the whole file may use the extension.
static uint32_t by_instruction(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= WORD_SIZE; data += WORD_SIZE, size -= WORD_SIZE)
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1"
                : "+r"(state)
                : "r"(load_word(data)));
    for (; size > 0; data++, size--)
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(*data));
    return state;
}

tfos__crc32c_update *tfos__crc32c_instruction(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32 ? by_instruction : NULL;
}

#else

tfos__crc32c_update *tfos__crc32c_instruction(void)
{
    return NULL;
}

#endif

static void choose(void)
{
    tfos__crc32c_update *instruction = tfos__crc32c_instruction();
    chosen = instruction ? instruction : tfos__crc32c_by_tables;
}

uint32_t tfos_crc32c(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&way_chosen, choose);
    return ~chosen(~crc, data, size);
}

uint32_t tfos_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}
