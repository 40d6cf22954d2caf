/* The reader of MiniMalloc files: what it takes, and the one sentence for what it does not. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "planner/pack_csv.h"

static bool read_text(const char *text, tn_pack_csv *csv, char *message)
{
    return tn_pack_csv_parse(text, strlen(text), "f.csv", csv, message);
}

static void must_read(const char *text, tn_pack_csv *csv)
{
    char message[TN_PACK_CSV_MESSAGE];
    ck_assert_msg(read_text(text, csv, message), "%s", message);
}

START_TEST(the_public_format_is_read)
{
    tn_pack_csv csv;
    must_read("id,lower,upper,size\nb1,0,3,4\nb2,3,9,5\n", &csv);
    ck_assert_uint_eq(csv.count, 2);
    ck_assert_str_eq(csv.names[1], "b2");
    ck_assert_uint_eq(csv.buffers[1].lower, 3);
    ck_assert_uint_eq(csv.buffers[1].upper, 9);
    ck_assert_uint_eq(csv.buffers[1].size, 5);
    ck_assert_uint_eq(csv.buffers[1].alignment, 1);
    ck_assert(csv.buffers[1].hint == TN_PACK_NO_HINT && csv.buffers[1].gap_count == 0 && !csv.offsets);
    ck_assert_uint_eq(csv.lines[1], 3);
    tn_pack_csv_free(&csv);
}
END_TEST

START_TEST(columns_stand_in_any_order_and_have_other_names)
{
    tn_pack_csv csv;
    must_read("\xEF\xBB\xBF size , end,start,buffer,align,hint,gaps\r\n\r\n 8,20,10 ,x y,512,1024,12-14 16-18\r\n8,20,10,z,,,\n", &csv);
    ck_assert_uint_eq(csv.count, 2);
    ck_assert_str_eq(csv.names[0], "x y");
    ck_assert_uint_eq(csv.buffers[0].alignment, 512);
    ck_assert_uint_eq(csv.buffers[0].hint, 1024);
    ck_assert_uint_eq(csv.buffers[0].gap_count, 2);
    ck_assert_uint_eq(csv.buffers[0].gaps[1].lower, 16);
    ck_assert_uint_eq(csv.buffers[0].gaps[1].upper, 18);
    ck_assert_uint_eq(csv.buffers[1].alignment, 1);
    ck_assert_uint_eq(csv.buffers[1].gap_count, 0);
    ck_assert(csv.buffers[1].hint == TN_PACK_NO_HINT);
    ck_assert_uint_eq(csv.lines[0], 3);
    tn_pack_csv_free(&csv);
}
END_TEST

START_TEST(offsets_of_a_solved_file_are_hints_unless_it_has_hints)
{
    tn_pack_csv csv;
    must_read("id,lower,upper,size,offset\na,0,1,4,12\n", &csv);
    ck_assert_uint_eq(csv.offsets[0], 12);
    ck_assert_uint_eq(csv.buffers[0].hint, 12);
    tn_pack_csv_free(&csv);
    must_read("id,lower,upper,size,offset,hint\na,0,1,4,12,\n", &csv);
    ck_assert(csv.buffers[0].hint == TN_PACK_NO_HINT);
    tn_pack_csv_free(&csv);
}
END_TEST

START_TEST(numbers_of_sixty_four_bits_are_kept)
{
    tn_pack_csv csv;
    must_read("id,lower,upper,size\na,0,18446744073709551615,18446744073709551615", &csv);
    ck_assert_uint_eq(csv.buffers[0].upper, UINT64_MAX);
    ck_assert_uint_eq(csv.buffers[0].size, UINT64_MAX);
    tn_pack_csv_free(&csv);
}
END_TEST

#define HEAD "id,lower,upper,size,alignment,gaps,hint\n"

static const struct {
    const char *text, *message;
} malformed[] = {
    {"", "f.csv: the file holds no header"},
    {"\n \n", "f.csv: the file holds no header"},
    {"id,lower,upper,size\n", "f.csv: the file holds a header and no buffers"},
    {"id,lower,upper\na,0,1\n", "f.csv:1: the header names no column size"},
    {"id,lower,upper,size,start\n", "f.csv:1: the header names the column lower twice"},
    {"id,lower,upper,size,colour\n",
     "f.csv:1: the header names a column \"colour\", which is none of id, lower, upper, size, alignment, gaps, hint, offset"},
    {"id,lower,upper,size,\x1b[1m\n",
     "f.csv:1: the header names a column \"?[1m\", which is none of id, lower, upper, size, alignment, gaps, hint, offset"},
    {HEAD "a,0,1,4,1,\n", "f.csv:2: there are 6 fields where the header has 7"},
    {HEAD "a,0,1,4,1,,,\n", "f.csv:2: there are more fields than the header's 7"},
    {HEAD "\n\na,-1,1,4,1,,\n", "f.csv:4: lower is \"-1\", which is not a whole number from 0 to 2^64 - 1"},
    {HEAD "a,0,18446744073709551616,4,1,,\n", "f.csv:2: upper is \"18446744073709551616\", which is not a whole number from 0 to 2^64 - 1"},
    {HEAD "a,0,1,,1,,\n", "f.csv:2: size is \"\", which is not a whole number from 0 to 2^64 - 1"},
    {HEAD "a,0,1,4k,1,,\n", "f.csv:2: size is \"4k\", which is not a whole number from 0 to 2^64 - 1"},
    {HEAD "a,0,1,4,1,,x\n", "f.csv:2: hint is \"x\", which is not a whole number from 0 to 2^64 - 1"},
    {HEAD "a,2,1,4,1,,\n", "f.csv:2: lower 2 is above upper 1"},
    {HEAD "a,0,1,4,0,,\n", "f.csv:2: alignment is 0, which is not from 1 to 2^40"},
    {HEAD "a,0,1,4,1099511627777,,\n", "f.csv:2: alignment is 1099511627777, which is not from 1 to 2^40"},
    {HEAD "a,0,9,4,1,3,\n", "f.csv:2: gaps is \"3\", which is not a list such as 3-5 9-12"},
    {HEAD "a,0,9,4,1,3-5:7,\n", "f.csv:2: gaps is \"3-5:7\", which is not a list such as 3-5 9-12"},
    {HEAD "a,0,9,4,1,5-5,\n", "f.csv:2: the gap 5-5 is empty"},
    {HEAD "a,0,9,4,1,5-10,\n", "f.csv:2: the gap 5-10 is not within the lifetime"},
    {HEAD "a,0,9,4,1,5-7 2-5,\n", "f.csv:2: the gaps 2-5 and 5-7 overlap or touch"},
    {HEAD ",0,9,4,1,,\n", "f.csv:2: the id is empty"},
    {HEAD "\"a\",0,9,4,1,,\n", "f.csv:2: the id \"\"a\"\" holds a quotation mark or a control character"},
    {HEAD "a,0,9,4,1,,\nb,0,9,4,1,,\na,0,9,4,1,,\n", "f.csv:4: the id \"a\" stands on line 2 too"},
};

START_TEST(every_malformed_file_ends_in_one_sentence_with_its_line)
{
    tn_pack_csv csv;
    char message[TN_PACK_CSV_MESSAGE];
    ck_assert(!read_text(malformed[_i].text, &csv, message));
    ck_assert_str_eq(message, malformed[_i].message);
    ck_assert(!csv.buffers && !csv.text && !csv.gaps && csv.count == 0);
}
END_TEST

START_TEST(what_is_no_text_is_refused)
{
    tn_pack_csv csv;
    char message[TN_PACK_CSV_MESSAGE], name[300];
    ck_assert(!tn_pack_csv_parse("id,lower\n\0", 10, "f.csv", &csv, message));
    ck_assert_str_eq(message, "f.csv:2: the line holds a zero byte");
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert(!tn_pack_csv_parse("", 0, name, &csv, message));
    ck_assert_uint_lt(strlen(message), TN_PACK_CSV_MESSAGE);
    ck_assert(!tn_pack_csv_read("/nonexistent/file.csv", &csv, message));
    ck_assert_str_eq(message, "/nonexistent/file.csv: the file cannot be read: No such file or directory");
    ck_assert(!tn_pack_csv_read("/", &csv, message));
    ck_assert_str_eq(message, "/: the file cannot be read: Is a directory");
}
END_TEST

START_TEST(what_is_written_is_read_again)
{
    static const char text[] = "id,lower,upper,size,alignment,gaps,hint,offset\nq,0,9,4,2,3-5 7-8,6,10\nr,1,2,3,1,,,20\n";
    tn_pack_csv csv, again;
    char *written = NULL;
    size_t length = 0;
    must_read(text, &csv);
    FILE *out = open_memstream(&written, &length);
    ck_assert(tn_pack_csv_write(out, &csv, csv.offsets));
    fclose(out);
    ck_assert_str_eq(written, text);
    must_read(written, &again);
    ck_assert_uint_eq(again.count, 2);
    tn_pack_csv_free(&csv);
    tn_pack_csv_free(&again);
    free(written);
}
END_TEST

START_TEST(bytes_at_random_never_break_it)
{
    random_state random = {fixture_seed(31)};
    static const char alphabet[] = "0123456789,,,,\n\n-- \r\tidloweruppersizealignmentgapshintoffset\"";
    static const char start[] = "id,lower,upper,size,gaps\n";
    int read = 0;
    for (int round = 0; round < 20000; round++) {
        char bytes[160], message[TN_PACK_CSV_MESSAGE];
        tn_pack_csv csv;
        size_t length = random_below(&random, sizeof(bytes));
        for (size_t k = 0; k < length; k++)
            bytes[k] = k < sizeof(start) - 1 && round % 8 ? start[k] : alphabet[random_below(&random, sizeof(alphabet) - 1)];
        if (round % 3 == 0) {
            length = (size_t)snprintf(bytes, sizeof(bytes), "%sx%d,%d,%d,5,%d-%d\n", start, round, (int)random_below(&random, 9),
                                      (int)random_below(&random, 30), (int)random_below(&random, 30), (int)random_below(&random, 30));
        }
        if (tn_pack_csv_parse(bytes, length, "f.csv", &csv, message)) {
            read++;
            tn_pack_csv_free(&csv);
        } else {
            ck_assert(strncmp(message, "f.csv:", 6) == 0 && !strchr(message, '\n'));
        }
    }
    ck_assert_int_gt(read, 100);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("csv");
    tcase_add_test(tests, the_public_format_is_read);
    tcase_add_test(tests, columns_stand_in_any_order_and_have_other_names);
    tcase_add_test(tests, offsets_of_a_solved_file_are_hints_unless_it_has_hints);
    tcase_add_test(tests, numbers_of_sixty_four_bits_are_kept);
    tcase_add_loop_test(tests, every_malformed_file_ends_in_one_sentence_with_its_line, 0, sizeof(malformed) / sizeof(malformed[0]));
    tcase_add_test(tests, what_is_no_text_is_refused);
    tcase_add_test(tests, what_is_written_is_read_again);
    tcase_add_test(tests, bytes_at_random_never_break_it);
    return fixture_run("csv", tests);
}
