// SPDX-License-Identifier: Apache-2.0
// What is exchanged of parameters of which few have changed, and that it comes to the same.
#include <string.h>

#include "collective/shared_parameters.h"
#include "harness.h"

#define COUNT (2 * TFOS__COLLECTIVE_PIECE_SIZE + 100)
#define LAST (COUNT - 1)

static float values[COUNT], pulled[COUNT], expected[COUNT];

static const struct tfos_collective_span spans[] = {{values, 70}, {values + 70, COUNT - 70}};

static void set_first_values(void)
{
    for (int64_t i = 0; i < COUNT; i++)
        values[i] = pulled[i] = expected[i] = (float)(i % 1000);
}

/// Makes the piece what `values` have changed by.
static void subtract(struct tfos__collective_piece *piece, int64_t number)
{
    struct tfos_error err;
    struct tfos__collective_vector vector;
    assert_done(tfos__collective_vector_init(&vector, spans, 2, sizeof(float), &err));
    tfos__collective_piece_init(piece, number, COUNT);
    tfos__collective_piece_subtract(piece, &vector, pulled, 0.5F);
    tfos__collective_vector_clear(&vector);
}

static void blocks_with_another_value_are_changes(void **state)
{
    (void)state;
    static struct tfos__collective_piece piece;
    set_first_values();
    for (int64_t number = 0; number < 3; number++) {
        subtract(&piece, number);
        assert_int_equal(piece.block_count, 0);
    }
    values[15] += 4; // the first block, and, over the border of spans, the fifth
    values[70] += 8;
    values[LAST] -= 2;
    subtract(&piece, 0);
    assert_int_equal(piece.block_count, 2);
    assert_int_equal(piece.blocks[0], 0);
    assert_int_equal(piece.blocks[1], 4);
    assert_true(piece.values[15] == 2 && piece.values[14] == 0 && piece.values[16 + 6] == 4);
    assert_int_equal(tfos__collective_piece_changed_count(&piece), 32);
    subtract(&piece, 2);
    assert_int_equal(piece.block_count, 1);
    assert_int_equal(tfos__collective_piece_changed_count(&piece), 4); // the last block is short
    assert_true(piece.values[3] == -1);
}

static void changes_are_the_same_after_their_way(void **state)
{
    (void)state;
    static struct tfos__collective_piece piece, other;
    unsigned char bytes[TFOS__COLLECTIVE_FRAME_CAPACITY];
    struct tfos_error err;
    bool is_end;
    for (int64_t every = 1; every < 9000; every = every * 3 + 1) {
        set_first_values();
        for (int64_t i = 0; i < COUNT; i += every)
            values[i] += 2;
        for (int64_t number = 0; number < 3; number++) {
            subtract(&piece, number);
            if (piece.block_count == 0)
                continue; // it does not travel
            size_t size = tfos__collective_piece_encode(&piece, bytes);
            assert_done(
                tfos__collective_piece_decode(&other, bytes, COUNT, number - 1, &is_end, &err));
            assert_int_equal(size, 8 + tfos__collective_piece_block_size(&other));
            assert_done(tfos__collective_piece_decode_blocks(&other, bytes + 8, &err));
            memcpy(other.values, piece.values, sizeof(other.values));
            for (int64_t i = 0; i < other.block_count * 16; i++)
                other.values[i] += 1; // where nothing has changed
            tfos__collective_piece_write(&other, pulled);
        }
        for (int64_t i = 0; i < COUNT; i++) {
            int64_t block = i / 16 * 16;
            int64_t first = (block + every - 1) / every * every; // that changed from there on
            bool has_changed = first < block + 16 && first < COUNT;
            float sent = values[i] != expected[i] ? 2 : 1;
            assert_true(pulled[i] == (has_changed ? sent : expected[i]));
        }
    }
    assert_int_equal(tfos__collective_piece_encode(NULL, bytes), 8);
    assert_done(tfos__collective_piece_decode(&other, bytes, COUNT, 2, &is_end, &err));
    assert_true(is_end);
}

static void a_pull_has_what_has_changed_since_the_last(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__collective_parameters parameters = {.count = COUNT, .fd = -1};
    char token[TFOS__COLLECTIVE_TOKEN_SIZE];
    uint32_t marks[2][3] = {0};
    assert_done(tfos__collective_parameters_alloc(&parameters, &err));
    assert_done(tfos__collective_parameters_init(&parameters, token, &err));
    struct tfos__collective_piece *piece = parameters.piece;
    // Versions may wrap.
    for (int number = 0; number < 3; number++)
        parameters.piece_versions[number] = marks[0][number] = marks[1][number] = UINT32_MAX - 1;
    for (int64_t i = 0; i < 3 * TFOS__COLLECTIVE_PIECE_BLOCKS; i++)
        parameters.block_versions[i] = UINT32_MAX - 1;
    for (int round = 0; round < 5; round++) {
        set_first_values();
        values[32 + 16 * round] += 2;
        values[LAST] += 2;
        for (int64_t number = 0; number < 3; number++) {
            subtract(piece, number);
            assert_done(tfos__collective_parameters_push(&parameters, piece, &err));
            tfos__collective_piece_init(piece, number, COUNT);
            assert_done(tfos__collective_parameters_pull(&parameters, piece, marks[0], NULL, &err));
            assert_int_equal(piece->block_count, number == 1 ? 0 : 1);
            tfos__collective_piece_init(piece, number, COUNT);
            assert_done(tfos__collective_parameters_pull(&parameters, piece, marks[0], NULL, &err));
            assert_int_equal(piece->block_count, 0);
        }
    }
    tfos__collective_piece_init(piece, 0, COUNT); // the other rank has pulled none of these
    assert_done(tfos__collective_parameters_pull(&parameters, piece, marks[1], NULL, &err));
    assert_int_equal(piece->block_count, 5);
    for (int round = 0; round < 5; round++)
        assert_true(piece->blocks[round] == 2 + round && piece->values[16 * round] == 1);
    tfos__collective_piece_init(piece, 2, COUNT);
    assert_done(tfos__collective_parameters_pull(&parameters, piece, marks[1], NULL, &err));
    assert_true(piece->block_count == 1 && piece->values[3] == 5);
    tfos__collective_parameters_clear(&parameters);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(blocks_with_another_value_are_changes),
    cmocka_unit_test(changes_are_the_same_after_their_way),
    cmocka_unit_test(a_pull_has_what_has_changed_since_the_last),
};

TEST_MAIN(cases)
