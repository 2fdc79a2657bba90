// SPDX-License-Identifier: Apache-2.0
// Each character becomes the lower case of its upper case: some letters have two lower cases.
#include "base/letter_case.h"

#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <wctype.h>

#include "base/fail.h"
#include "base/utf8.h"

#define CHARACTER_SIZE 4 // bytes at most in UTF-8

static locale_t unicode; // none: 0; kept until the process ends
static pthread_once_t unicode_opened = PTHREAD_ONCE_INIT;

static void open_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static uint8_t fold_ascii(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

// Reads the character that begins with `*at`, which is no ASCII, and moves behind it.
static wint_t read_character(const uint8_t **at)
{
    int more = **at >= 0xF0 ? 3 : **at >= 0xE0 ? 2 : 1;
    wint_t character = *(*at)++ & (0x3Fu >> more);
    while (more-- > 0)
        character = character << 6 | (*(*at)++ & 0x3Fu);
    return character;
}

static uint8_t *write_character(uint8_t *at, wint_t character)
{
    int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    *at++ = (uint8_t)(character >> 6 * more | (more > 0 ? ~(0x7Fu >> more) : 0));
    while (more-- > 0)
        *at++ = (uint8_t)((character >> 6 * more & 0x3F) | 0x80);
    return at;
}

enum tfos_status tfos__fold_case(struct tfos_view text, struct tfos__buffer *out,
                                 struct tfos_error *err)
{
    const uint8_t *at = text.data, *end = at + text.size;
    TFOS__TRY(tfos__buffer_reserve(out, text.size * CHARACTER_SIZE, err));
    pthread_once(&unicode_opened, open_unicode);
    bool is_plain = !unicode || !tfos__is_utf8(text.data, text.size);
    uint8_t *to = out->data + out->end;
    while (at < end)
        if (is_plain || *at < 0x80)
            *to++ = fold_ascii(*at++);
        else
            to = write_character(to, towlower_l(towupper_l(read_character(&at), unicode), unicode));
    out->end = (size_t)(to - out->data);
    return TFOS_OK;
}
