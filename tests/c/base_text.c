// SPDX-License-Identifier: Apache-2.0
// Numbers and bytes as text.
#include <math.h>

#include "base/text.h"
#include "harness.h"

static void s95_numbers_have_the_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {1.1, "1.1"},           {0.1, "0.1"},        {100000, "100000"},
        {1e300, "1e+300"},      {-INFINITY, "-inf"}, {0.1 + 0.2, "0.30000000000000004"},
        {16777217, "16777217"},
    };
    char text[TFOS__NUMBER_TEXT];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(tfos__number_print(cases[i].number, text), cases[i].text);
    assert_string_equal(tfos__float_print(1.1f, text), "1.1");
    assert_string_equal(tfos__float_print(16777216.0f, text), "16777216");
    assert_string_equal(tfos__float_print(NAN, text), "nan");
}

/// The test vectors of FIPS 180-2.
static void a_digest_is_sha256_in_hexadecimal_digits(void **state)
{
    (void)state;
    char text[TFOS__DIGEST_TEXT];
    assert_int_equal(tfos__text_print_digest((struct tfos_view){"abc", 3}, "test", text, NULL),
                     TFOS_OK);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(tfos__text_print_digest((struct tfos_view){NULL, 0}, "test", text, NULL),
                     TFOS_OK);
    assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    tfos__text_print_hex("\x00\xff", 2, text);
    assert_string_equal(text, "00ff");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s95_numbers_have_the_fewest_digits),
    cmocka_unit_test(a_digest_is_sha256_in_hexadecimal_digits),
};

TEST_MAIN(cases)
