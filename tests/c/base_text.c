// SPDX-License-Identifier: Apache-2.0
// Numbers as messages have them.
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

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s95_numbers_have_the_fewest_digits),
};

TEST_MAIN(cases)
