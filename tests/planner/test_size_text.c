/* Sizes as people write them. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/size_text.h"

static const struct good {
    const char *text;
    uint64_t bytes;
} good[] = {
    {"0", 0},
    {"7", 7},
    {"7B", 7},
    {"007", 7},
    {"  7  ", 7},
    {"4KiB", 4096},
    {"4 KiB", 4096},
    {"\t32607MiB ", 32607ull << 20},
    {"1.5GiB", 1610612736},
    {"0.5KiB", 512},
    {"2TiB", 2ull << 40},
    {"1.000MiB", 1 << 20},
    {"0.0009765625KiB", 1},
    {"0.000000000931322574615478515625GiB", 1},                 /* 2^-30, to the last digit */
    {"0.0000000000009094947017729282379150390625TiB", 1},       /* 2^-40 */
    {"18446744073709551615", UINT64_MAX},
    {"17592186044415.99999904632568359375MiB", UINT64_MAX},     /* 2^44 - 2^-20 */
    /* Between two bytes: the next one, without a step through a double. */
    {"0.1B", 1},
    {"1679.6MiB", 1761188250},
    {"9007199254740993.0000000000000000000000000000000000000000000000000000000000000000000001", 9007199254740994ull},
};

START_TEST(a_size_is_read_to_the_byte)
{
    const struct good *g = &good[_i];
    uint64_t bytes = 1;
    ck_assert_msg(tn_size_read(g->text, strlen(g->text), &bytes, NULL) == TN_SIZE_OK, "%s", g->text);
    ck_assert_msg(bytes == g->bytes, "%s: %" PRIu64 ", not %" PRIu64, g->text, bytes, g->bytes);
}
END_TEST

static const struct bad {
    const char *text;
    tn_size_error error;
    size_t at;
} bad[] = {
    {"", TN_SIZE_EMPTY, 0},
    {"   ", TN_SIZE_EMPTY, 0},
    {"-1", TN_SIZE_NUMBER, 0},
    {"+1", TN_SIZE_NUMBER, 0},
    {"MiB", TN_SIZE_NUMBER, 0},
    {"  x", TN_SIZE_NUMBER, 2},
    {".5GiB", TN_SIZE_NUMBER, 0},
    {"1.GiB", TN_SIZE_NUMBER, 2},
    {"1.", TN_SIZE_NUMBER, 2},
    {"1e6", TN_SIZE_UNIT, 1},
    {"0x10", TN_SIZE_UNIT, 1},
    {"1.2.3", TN_SIZE_UNIT, 3},
    {"1,5GiB", TN_SIZE_UNIT, 1},
    {"12GB", TN_SIZE_UNIT, 2},
    {"12 mib", TN_SIZE_UNIT, 3},
    {"12MiBx", TN_SIZE_UNIT, 2},
    {"12 MiB 3", TN_SIZE_UNIT, 3},
    {"1 2", TN_SIZE_UNIT, 2},
    {"nan", TN_SIZE_NUMBER, 0},
    {"18446744073709551616", TN_SIZE_TOO_LARGE, 0},
    {" 99999999999999999999999999999999999999 ", TN_SIZE_TOO_LARGE, 1},
    {"16777216TiB", TN_SIZE_TOO_LARGE, 0},
    {"17592186044416MiB", TN_SIZE_TOO_LARGE, 0},
    {"18446744073709551615.5", TN_SIZE_TOO_LARGE, 0},
};

START_TEST(what_is_no_size_is_told_with_its_place_and_leaves_the_result)
{
    const struct bad *b = &bad[_i];
    uint64_t bytes = 4711;
    size_t at = 99;
    tn_size_error error = tn_size_read(b->text, strlen(b->text), &bytes, &at);
    ck_assert_msg(error == b->error && at == b->at, "\"%s\": error %d at %zu", b->text, error, at);
    ck_assert_uint_eq(bytes, 4711);
    char sentence[256];
    tn_size_explain(b->text, strlen(b->text), error, at, sentence, sizeof(sentence));
    ck_assert_ptr_nonnull(strstr(sentence, tn_size_error_text(error)));
}
END_TEST

START_TEST(the_sentence_shows_the_text_and_masks_what_is_not_printable)
{
    char sentence[256], text[200];
    tn_size_explain("12GB", 4, TN_SIZE_UNIT, 2, sentence, sizeof(sentence));
    ck_assert_str_eq(sentence, "\"12GB\" is no size: at character 3, "
                               "the unit must be B, KiB, MiB, GiB or TiB, which count in powers of 1024");
    tn_size_explain("\x1b[31m\"\xff", 7, TN_SIZE_NUMBER, 0, sentence, sizeof(sentence));
    ck_assert_ptr_nonnull(strstr(sentence, "\"?[31m??\""));
    memset(text, 'z', sizeof(text));
    tn_size_explain(text, sizeof(text), TN_SIZE_NUMBER, 0, sentence, sizeof(sentence));
    ck_assert_ptr_nonnull(strstr(sentence, "zzz...\" is no size"));
    char small[8];
    tn_size_explain("12GB", 4, TN_SIZE_UNIT, 2, small, sizeof(small));
    ck_assert_uint_eq(strlen(small), 7);
    ck_assert_str_eq(tn_size_error_text((tn_size_error)77), "it is no size");
}
END_TEST

START_TEST(bytes_behind_the_length_are_not_read)
{
    uint64_t bytes = 0;
    ck_assert(tn_size_read("12MiB", 2, &bytes, NULL) == TN_SIZE_OK);
    ck_assert_uint_eq(bytes, 12);
    char *exact = malloc(3); /* under AddressSanitizer a look behind it is an error */
    memcpy(exact, "1.5", 3);
    ck_assert(tn_size_read(exact, 3, &bytes, NULL) == TN_SIZE_OK);
    ck_assert_uint_eq(bytes, 2);
    free(exact);
}
END_TEST

static uint64_t state;
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

START_TEST(what_is_written_reads_back_as_the_same)
{
    uint64_t seed = state = 0x51e7e87ull;
    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = next() >> (next() % 64) << (next() % 50), back = bytes + 1;
        char text[TN_SIZE_TEXT];
        tn_size_write(bytes, text);
        ck_assert_msg(tn_size_read(text, strlen(text), &back, NULL) == TN_SIZE_OK && back == bytes, "seed %" PRIx64 ": %" PRIu64 " as %s", seed,
                      bytes, text);
    }
    char text[TN_SIZE_TEXT];
    ck_assert_str_eq(tn_size_write(2 << 20, text), "2MiB");
    ck_assert_str_eq(tn_size_write(0, text), "0");
    ck_assert_str_eq(tn_size_write(513, text), "513");
    ck_assert_str_eq(tn_size_write(1536 << 10, text), "1536KiB");
}
END_TEST

/* thousandths of a MiB: ceil(n * 2^20 / 1000), by another road than the reader's. */
START_TEST(a_decimal_is_its_ceiling_in_bytes)
{
    uint64_t seed = state = 0xdec1ull;
    for (int i = 0; i < 20000; i++) {
        uint64_t n = next() % 1000000000000ull;
        uint64_t expected = (uint64_t)(((unsigned __int128)n * (1 << 20) + 999) / 1000), bytes = 0;
        char text[40];
        snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64 "MiB", n / 1000, n % 1000);
        ck_assert_msg(tn_size_read(text, strlen(text), &bytes, NULL) == TN_SIZE_OK && bytes == expected, "seed %" PRIx64 ": %s", seed, text);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("size_text");
    TCase *t = tcase_create("size_text");
    tcase_add_loop_test(t, a_size_is_read_to_the_byte, 0, (int)(sizeof(good) / sizeof(good[0])));
    tcase_add_loop_test(t, what_is_no_size_is_told_with_its_place_and_leaves_the_result, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(t, the_sentence_shows_the_text_and_masks_what_is_not_printable);
    tcase_add_test(t, bytes_behind_the_length_are_not_read);
    tcase_add_test(t, what_is_written_reads_back_as_the_same);
    tcase_add_test(t, a_decimal_is_its_ceiling_in_bytes);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
