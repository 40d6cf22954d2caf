/* The control block from both sides: order, room, what stays untaken, whose process is alive, and damage. */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/control.h"
#include "ledger/control_client.h"

static char folder[64], path[4200];
static tn_journal *journal;
static tn_control *block;
static tn_control_client client;

static void begin(void)
{
    strcpy(folder, "/tmp/control-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    tn_journal_options o = {.run_dir = folder, .api_count = 1};
    ck_assert_int_eq(tn_journal_open(&o, &journal), TN_OK);
    block = tn_control_make(journal);
    ck_assert_ptr_nonnull(block);
    strcpy(path, tn_journal_path(journal));
    strcpy(path + strlen(path) - strlen(TN_JOURNAL_SUFFIX), TN_CONTROL_SUFFIX);
    ck_assert_int_eq(tn_control_open(path, 1, &client), TN_OK);
}

static void end(void)
{
    tn_control_close(&client);
    unlink(path);
    unlink(tn_journal_path(journal));
    rmdir(folder);
}

static tn_error post(uint32_t kind, uint32_t value, const char *text)
{
    return tn_control_post(&client, kind, value, TN_CAUSE_CTL, 1000 + value, text);
}

START_TEST(commands_come_in_order)
{
    tn_control_slot s;
    ck_assert_int_eq(tn_control_next(block, &s), 0);
    ck_assert_uint_eq(block->attention, 0);
    ck_assert_int_eq(post(TN_COMMAND_PHASE, TN_PHASE_PLANNING, NULL), TN_OK);
    ck_assert_int_eq(post(TN_COMMAND_MARK, 0, "a mark"), TN_OK);
    ck_assert_uint_eq(block->attention, TN_ATTENTION_COMMAND);
    ck_assert_uint_eq(tn_control_phase_to_come(&client), TN_PHASE_PLANNING);
    ck_assert_int_eq(tn_control_next(block, &s), 1);
    ck_assert_uint_eq(s.kind, TN_COMMAND_PHASE);
    ck_assert_uint_eq(s.value, TN_PHASE_PLANNING);
    ck_assert_uint_eq(s.tsc, 1000 + TN_PHASE_PLANNING);
    ck_assert_int_eq(tn_control_untaken(&client, 0, &s), 1);
    ck_assert_str_eq(s.text, "a mark");
    ck_assert_int_eq(tn_control_untaken(&client, 1, &s), 0);
    ck_assert_int_eq(tn_control_next(block, &s), 1);
    ck_assert_str_eq(s.text, "a mark");
    ck_assert_int_eq(tn_control_next(block, &s), 0);
    ck_assert_int_eq(tn_control_untaken(&client, 0, &s), 0);
}
END_TEST

START_TEST(no_room_is_an_answer)
{
    tn_control_slot s;
    char text[16];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < TN_CONTROL_SLOTS; i++) {
            snprintf(text, sizeof text, "%u", i);
            ck_assert_int_eq(post(TN_COMMAND_MARK, i, text), TN_OK);
        }
        ck_assert_int_eq(post(TN_COMMAND_MARK, 99, "too much"), TN_E_NOSPACE);
        ck_assert_uint_eq(block->lost, round + 1);
        for (unsigned i = 0; i < TN_CONTROL_SLOTS; i++) {
            snprintf(text, sizeof text, "%u", i);
            ck_assert_int_eq(tn_control_next(block, &s), 1);
            ck_assert_str_eq(s.text, text);
        }
        ck_assert_int_eq(tn_control_next(block, &s), 0);
    }
}
END_TEST

START_TEST(long_texts_are_cut)
{
    tn_control_slot s;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ck_assert_int_eq(post(TN_COMMAND_MARK, 0, text), TN_OK);
    ck_assert_int_eq(tn_control_next(block, &s), 1);
    ck_assert_uint_eq(strlen(s.text), TN_CONTROL_TEXT - 1);
}
END_TEST

START_TEST(whatever_stands_there_is_no_crash)
{
    tn_control_slot s;
    memset(block->slot, 0xff, sizeof block->slot);
    block->posted = UINT64_MAX;
    ck_assert_int_eq(tn_control_next(block, &s), 1);
    ck_assert_uint_lt(strlen(s.text), TN_CONTROL_TEXT);
    unsigned more = 0;
    while (more < 1000 && tn_control_next(block, &s))
        more++;
    ck_assert_uint_lt(more, TN_CONTROL_SLOTS);
    block->posted = 0; /* behind what was taken */
    ck_assert_int_eq(tn_control_untaken(&client, 0, &s), 0);
}
END_TEST

START_TEST(the_file_is_private)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_uint_eq(st.st_size, TN_CONTROL_BYTES);
    ck_assert_uint_eq(block->pid, getpid());
    ck_assert_uint_eq(block->random_id, strtoull(path + strlen(path) - 20, NULL, 16));
    ck_assert_ptr_null(tn_control_make(journal)); /* never over one that is there */
}
END_TEST

START_TEST(no_block_beyond_the_limit_on_files)
{
    struct rlimit limit = {TN_CONTROL_BYTES - 1, TN_CONTROL_BYTES - 1};
    tn_control_close(&client);
    unlink(path);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0); /* SIGXFSZ would end this test */
    ck_assert_ptr_null(tn_control_make(journal));
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(other_files_are_refused)
{
    tn_control_client other;
    ck_assert_int_eq(tn_control_open("/nonexistent", 0, &other), TN_E_OPEN);
    ck_assert_int_eq(tn_control_open(folder, 0, &other), TN_E_OPEN);
    memcpy(block->magic, "SOMEBODY", 8);
    ck_assert_int_eq(tn_control_open(path, 0, &other), TN_E_FORMAT);
    memcpy(block->magic, TN_CONTROL_MAGIC, 8);
    block->version++;
    ck_assert_int_eq(tn_control_open(path, 0, &other), TN_E_VERSION);
    block->version--;
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_int_eq(tn_control_open(path, 0, &other), TN_E_TRUNCATED);
}
END_TEST

START_TEST(who_is_alive)
{
    ck_assert(tn_control_alive(&client));
    int pipe_ends[2];
    char byte;
    ck_assert_int_eq(pipe2(pipe_ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "60", (char *)NULL);
        _exit(1);
    }
    close(pipe_ends[1]);
    ck_assert_int_eq(read(pipe_ends[0], &byte, 1), 0); /* closed by the exec */
    close(pipe_ends[0]);
    block->pid = (uint32_t)child; /* a living process that has another program by now: it has no such mapping */
    ck_assert(!tn_control_alive(&client));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!tn_control_alive(&client));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("control");
    TCase *cases = tcase_create("control");
    tcase_add_checked_fixture(cases, begin, end);
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, commands_come_in_order);
    tcase_add_test(cases, no_room_is_an_answer);
    tcase_add_test(cases, long_texts_are_cut);
    tcase_add_test(cases, whatever_stands_there_is_no_crash);
    tcase_add_test(cases, the_file_is_private);
    tcase_add_test(cases, no_block_beyond_the_limit_on_files);
    tcase_add_test(cases, other_files_are_refused);
    tcase_add_test(cases, who_is_alive);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
