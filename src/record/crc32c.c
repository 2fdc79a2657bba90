// SPDX-License-Identifier: Apache-2.0
// CRC-32C, reflected: polynomial 0x82F63B78, register and result inverted. The implementation is
// chosen once, at run time, because one binary serves CPUs with and without the instruction. The
// instruction takes three cycles, but one can start in each: three blocks of bytes are computed
// side by side, long ones first, then short ones, as many records are small. They are joined by
// what a block of zero bytes makes of the register, a linear function that is kept as tables (Gopal
// et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel, 2011).
#include "record/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define POLYNOMIAL 0x82F63B78u
#define MASK_DELTA 0xA282EAD8u
#define WORD_SIZE 8
#define LONG_BLOCK 512  // bytes; joining blocks costs next to nothing then
#define SHORT_BLOCK 128 // still half the time of one block after the other
#define BLOCK_COUNT 3

/// What a block of zero bytes makes of the register.
struct zeros {
    uint32_t table[4][256]; ///< [n]: of its n-th byte
};

static uint32_t tables[WORD_SIZE][256]; ///< [n]: of a byte with n zero bytes behind it
static struct zeros long_zeros, short_zeros;
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;
static tfos__record_crc32c_update *chosen;
static pthread_once_t implementation_chosen = PTHREAD_ONCE_INIT;

static uint64_t load_word(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof(word));
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

uint32_t tfos__record_crc32c_by_tables(uint32_t state, const uint8_t *data, size_t size)
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

#define INSTRUCTION_TARGET __attribute__((target("sse4.2")))

INSTRUCTION_TARGET static inline uint32_t step_word(uint32_t state, const uint8_t *data)
{
    return (uint32_t)_mm_crc32_u64(state, load_word(data));
}

INSTRUCTION_TARGET static inline uint32_t step_byte(uint32_t state, uint8_t byte)
{
    return _mm_crc32_u8(state, byte);
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__)

#define INSTRUCTION_TARGET

// By assembly: compilers offer the intrinsics only where the whole file may use the extension.
static inline uint32_t step_word(uint32_t state, const uint8_t *data)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(load_word(data)));
    return state;
}

static inline uint32_t step_byte(uint32_t state, uint8_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
    return state;
}

static bool has_instruction(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

#endif

#ifdef INSTRUCTION_TARGET

static void make_zeros(struct zeros *zeros, size_t size)
{
    static const uint8_t bytes[LONG_BLOCK];
    for (int n = 0; n < 4; n++)
        for (uint32_t byte = 0; byte < 256; byte++)
            zeros->table[n][byte] = tfos__record_crc32c_by_tables(byte << 8 * n, bytes, size);
}

static void make_all_zeros(void)
{
    make_zeros(&long_zeros, LONG_BLOCK);
    make_zeros(&short_zeros, SHORT_BLOCK);
}

/// The register behind a block of zero bytes.
static inline uint32_t pass_zeros(const struct zeros *zeros, uint32_t state)
{
    return zeros->table[0][state & 255] ^ zeros->table[1][state >> 8 & 255] ^
           zeros->table[2][state >> 16 & 255] ^ zeros->table[3][state >> 24];
}

/// Three blocks, one behind the other in memory.
INSTRUCTION_TARGET static inline uint32_t pass_blocks(uint32_t state, const uint8_t *data,
                                                      size_t size, const struct zeros *zeros)
{
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < size; i += WORD_SIZE) {
        state = step_word(state, data + i);
        second = step_word(second, data + size + i);
        third = step_word(third, data + 2 * size + i);
    }
    return pass_zeros(zeros, pass_zeros(zeros, state) ^ second) ^ third;
}

INSTRUCTION_TARGET static uint32_t by_instruction(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= BLOCK_COUNT * LONG_BLOCK; size -= BLOCK_COUNT * LONG_BLOCK) {
        state = pass_blocks(state, data, LONG_BLOCK, &long_zeros);
        data += BLOCK_COUNT * LONG_BLOCK;
    }
    for (; size >= BLOCK_COUNT * SHORT_BLOCK; size -= BLOCK_COUNT * SHORT_BLOCK) {
        state = pass_blocks(state, data, SHORT_BLOCK, &short_zeros);
        data += BLOCK_COUNT * SHORT_BLOCK;
    }
    for (; size >= WORD_SIZE; data += WORD_SIZE, size -= WORD_SIZE)
        state = step_word(state, data);
    for (; size > 0; data++, size--)
        state = step_byte(state, *data);
    return state;
}

tfos__record_crc32c_update *tfos__record_crc32c_instruction(void)
{
    static pthread_once_t zeros_made = PTHREAD_ONCE_INIT;
    if (!has_instruction())
        return NULL;
    pthread_once(&zeros_made, make_all_zeros);
    return by_instruction;
}

#else

tfos__record_crc32c_update *tfos__record_crc32c_instruction(void)
{
    return NULL;
}

#endif

static void choose(void)
{
    tfos__record_crc32c_update *instruction = tfos__record_crc32c_instruction();
    chosen = instruction ? instruction : tfos__record_crc32c_by_tables;
}

uint32_t tfos__record_crc32c(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&implementation_chosen, choose);
    return ~chosen(~crc, data, size);
}

uint32_t tfos__record_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}

bool tfos__record_crc32c_is_masked(const uint8_t *place, const void *data, size_t size)
{
    uint32_t masked;
    memcpy(&masked, place, sizeof(masked));
    return le32toh(masked) == tfos__record_crc32c_mask(tfos__record_crc32c(0, data, size));
}
