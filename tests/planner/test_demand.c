/* The language of demand files: what each key does, and a sentence with its place for whatever is wrong. */
#define _GNU_SOURCE
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/demand.h"
#include "planner/nearest.h"

static char message[TN_DOCUMENT_MESSAGE];

#define MODEL "model: {layers: 4, kv_heads: 2, head_dim: 8, weights: 10MiB}\n"
#define LIMITS "limits: {max_batch: 3, max_seq_len: 100}\n"
#define KV "kv: {dtype: f16, block_size: 16}\n"
#define LEAST MODEL LIMITS KV

static tn_demand_error parse(const char *text, tn_demand *out) { return tn_demand_parse("d.yaml", text, strlen(text), out, message); }

START_TEST(the_least_file_has_its_defaults)
{
    tn_demand d;
    ck_assert_msg(parse(LEAST, &d) == TN_DEMAND_OK, "%s", message);
    ck_assert_str_eq(d.name, "");
    ck_assert(d.budget == TN_DEMAND_UNSET);
    ck_assert_uint_eq(d.device.granularity, 1);
    ck_assert_uint_eq(d.model.layers, 4);
    ck_assert_uint_eq(d.model.weights, 10 << 20);
    ck_assert(d.model.kv_layers == TN_DEMAND_UNSET);
    ck_assert_uint_eq(d.model.kv_tensors, 2);
    ck_assert_uint_eq(d.limits.max_batch, 3);
    ck_assert_uint_eq(d.limits.full_sequences, 1);
    ck_assert(d.limits.step_tokens == TN_DEMAND_UNSET);
    ck_assert(d.kv.dtype == TN_DTYPE_F16);
    ck_assert_uint_eq(d.item_count, 0);
    ck_assert(!d.vision.enabled && !d.speculation.enabled && !d.sliding_window.enabled);
}
END_TEST

START_TEST(every_key_reaches_its_place)
{
    static const char text[] =
        "name: a model\n"
        "budget: 32607MiB\n"
        "device: {gpu: NVIDIA H200, driver: 580.65, loading: lazy, granularity: 2MiB}\n"
        "model: {layers: 9, hidden_size: 64, vocab_size: 1000, kv_layers: 5, kv_heads: 2, head_dim: 8, kv_tensors: 1, weights: 10MiB}\n"
        "limits: {max_batch: 3, max_seq_len: 100, step_tokens: 50, full_sequences: 2}\n"
        "kv: {dtype: nvfp4, block_size: 16, block_overhead: 48}\n"
        "caches:\n"
        "- {name: c, bytes: 1, optional: true}\n"
        "engine:\n"
        "- {name: e, per_sequence: 2, per_token: 3, per_context_token: 4}\n"
        "pools: []\n"
        "scratch:\n"
        "- {name: s, hidden_states: 5, logits: 6, optional: false}\n"
        "- {name: s2, bytes: 8KiB}\n"
        "charges: {context: 1, modules: 2, libraries: 3, streams: 4, graphs: 5, limits: 6, pools: 7, other: 8}\n"
        "graphs: {execs: 7, bytes_per_exec: 9KiB}\n"
        "features:\n"
        "  vision: {weights: 1GiB, buffers: 2KiB, image_tokens: 256}\n"
        "  speculation: {draft_tokens: 4, weights: 3KiB, buffers: 4KiB, kv_layers: 1, kv_heads: 2, head_dim: 3}\n"
        "  sliding_window: {window: 1024, layers: 4, step_tokens: 32, kv_heads: 5, head_dim: 6}\n";
    tn_demand d;
    ck_assert_msg(parse(text, &d) == TN_DEMAND_OK, "%s", message);
    ck_assert_str_eq(d.name, "a model");
    ck_assert_uint_eq(d.budget, 32607ull << 20);
    ck_assert_str_eq(d.device.gpu, "NVIDIA H200");
    ck_assert_str_eq(d.device.driver, "580.65");
    ck_assert_str_eq(d.device.loading, "lazy");
    ck_assert_uint_eq(d.device.granularity, 2 << 20);
    ck_assert_uint_eq(d.model.layers, 9);
    ck_assert_uint_eq(d.model.hidden_size, 64);
    ck_assert_uint_eq(d.model.vocab_size, 1000);
    ck_assert_uint_eq(d.model.kv_layers, 5);
    ck_assert_uint_eq(d.model.kv_tensors, 1);
    ck_assert_uint_eq(d.limits.step_tokens, 50);
    ck_assert_uint_eq(d.limits.full_sequences, 2);
    ck_assert(d.kv.dtype == TN_DTYPE_NVFP4);
    ck_assert_uint_eq(d.kv.block_overhead, 48);
    ck_assert_uint_eq(d.item_count, 4);
    ck_assert(d.items[0].tier == TN_ITEM_CACHE && d.items[0].optional && d.items[0].bytes == 1);
    ck_assert(d.items[1].tier == TN_ITEM_ENGINE && !d.items[1].optional);
    ck_assert(d.items[1].per_sequence == 2 && d.items[1].per_token == 3 && d.items[1].per_context_token == 4);
    ck_assert(d.items[2].tier == TN_ITEM_SCRATCH && d.items[2].hidden_states == 5 && d.items[2].logits == 6);
    ck_assert_str_eq(d.items[3].name, "s2");
    for (int i = 0; i < TN_CHARGES; i++)
        ck_assert_uint_eq(d.charges.bytes[i], (uint64_t)i + 1);
    ck_assert(d.graphs.execs == 7 && d.graphs.bytes_per_exec == 9 << 10);
    ck_assert(d.vision.enabled && d.vision.weights == 1 << 30 && d.vision.buffers == 2 << 10 && d.vision.image_tokens == 256);
    ck_assert(d.speculation.enabled && d.speculation.draft_tokens == 4 && d.speculation.kv_layers == 1);
    ck_assert(d.speculation.kv_heads == 2 && d.speculation.head_dim == 3 && d.speculation.weights == 3 << 10);
    ck_assert(d.sliding_window.enabled && d.sliding_window.window == 1024 && d.sliding_window.layers == 4);
    ck_assert(d.sliding_window.step_tokens == 32 && d.sliding_window.kv_heads == 5 && d.sliding_window.head_dim == 6);
}
END_TEST

START_TEST(a_size_alone_is_an_item_and_all_is_every_sequence)
{
    tn_demand d;
    ck_assert_msg(parse(MODEL "limits: {max_batch: 3, max_seq_len: 100, full_sequences: all}\n" KV
                              "engine: 310 MiB\nscratch: 7\ncaches: 1.5KiB\npools: 4\n",
                        &d) == TN_DEMAND_OK, "%s", message);
    ck_assert(d.limits.full_sequences == TN_DEMAND_UNSET);
    ck_assert_uint_eq(d.item_count, 4);
    /* By tier, not as they stand. */
    static const struct { const char *name; uint64_t bytes; } items[] = {{"weight caches", 1536}, {"engine-persistent", 310 << 20},
                                                                       {"pools", 4}, {"forward scratch", 7}};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(d.items[i].name, items[i].name);
        ck_assert_uint_eq(d.items[i].bytes, items[i].bytes);
    }
}
END_TEST

START_TEST(a_feature_can_stand_there_and_be_off)
{
    tn_demand d;
    ck_assert_msg(parse(LEAST "features:\n  vision: {weights: 1GiB, enabled: false}\n", &d) == TN_DEMAND_OK, "%s", message);
    ck_assert(!d.vision.enabled);
    ck_assert_uint_eq(d.vision.weights, 1 << 30);
    /* What is off needs not agree with the rest. */
    ck_assert_msg(parse(LEAST "features:\n  sliding_window: {enabled: false, window: 8, layers: 99}\n", &d) == TN_DEMAND_OK, "%s", message);
}
END_TEST

static const struct bad {
    const char *text;
    tn_demand_error error;
    const char *says;
} bad[] = {
    {"", TN_DEMAND_FILE, "d.yaml: there is nothing in it"},
    {"a: [\n", TN_DEMAND_FILE, "d.yaml: line 2: "},
    {LEAST "modle: 1\n", TN_DEMAND_UNKNOWN, "d.yaml: line 4: there is no key \"modle\" in the file (did you mean model?)"},
    {"model:\n  layers: 4\n  kv_head: 2\n", TN_DEMAND_UNKNOWN, "d.yaml: line 3: there is no key \"kv_head\" in model (did you mean kv_heads?)"},
    {"model:\n  dtype: f16\n", TN_DEMAND_UNKNOWN, "d.yaml: line 2: there is no key \"dtype\" in model; it belongs in kv"},
    {"model:\n  budget: 1\n", TN_DEMAND_UNKNOWN, "d.yaml: line 2: there is no key \"budget\" in model; it belongs to the file's first level"},
    {"kv:\n  zzzzzzzz: 1\n", TN_DEMAND_UNKNOWN, "d.yaml: line 2: there is no key \"zzzzzzzz\" in kv, which has dtype, block_size, block_overhead"},
    {"kv:\n  <<: 1\n", TN_DEMAND_UNKNOWN, "d.yaml: line 2: there is no key \"<<\" in kv, which has"},
    {LEAST "caches:\n- name: x\n  byte: 1\n", TN_DEMAND_UNKNOWN, "d.yaml: line 6: there is no key \"byte\" in caches (did you mean bytes?)"},
    {LEAST "features: {visoin: {weights: 1}}\n", TN_DEMAND_UNKNOWN,
     "d.yaml: line 4: there is no key \"visoin\" in features (did you mean vision?)"},
    {LIMITS KV, TN_DEMAND_MISSING, "d.yaml: there is no section model, which says layers and more"},
    {MODEL KV, TN_DEMAND_MISSING, "d.yaml: there is no section limits"},
    {MODEL LIMITS, TN_DEMAND_MISSING, "d.yaml: there is no section kv"},
    {"model: {layers: 4, kv_heads: 2, weights: 10MiB}\n" LIMITS KV, TN_DEMAND_MISSING, "d.yaml: line 1: model has no head_dim"},
    {LEAST "caches:\n- bytes: 1\n", TN_DEMAND_MISSING, "d.yaml: line 5: caches has no name"},
    {LEAST "features:\n  speculation:\n    weights: 1\n", TN_DEMAND_MISSING, "d.yaml: line 5: features.speculation has no draft_tokens"},
    {LEAST "scratch:\n- {name: s, logits: 1}\n", TN_DEMAND_MISSING, "d.yaml: line 4: \"s\" counts logits, and model.vocab_size is not given"},
    {LEAST "scratch:\n- {name: s, hidden_states: 1}\n", TN_DEMAND_MISSING, "d.yaml: line 4: \"s\" counts hidden_states"},
    {LEAST "features: {vision: {weights: 1, image_tokens: 4}}\n", TN_DEMAND_MISSING, "d.yaml: line 4: vision.image_tokens is given"},
    {"model: {layers: 0}\n", TN_DEMAND_VALUE, "d.yaml: line 1: layers is \"0\", not a whole number from 1 to 1000000"},
    {"model: {layers: -1}\n", TN_DEMAND_VALUE, "d.yaml: line 1: layers is \"-1\", not a whole number"},
    {"model: {layers: 1.5}\n", TN_DEMAND_VALUE, "d.yaml: line 1: layers is \"1.5\""},
    {"model: {layers: }\n", TN_DEMAND_VALUE, "d.yaml: line 1: layers is \"\""},
    {"model: {layers: 99999999999999999999}\n", TN_DEMAND_VALUE, "d.yaml: line 1: layers is \"99999999999999999999\""},
    {"model:\n  weights: 15467MB\n", TN_DEMAND_VALUE, "d.yaml: line 2: weights: \"15467MB\" is no size: at character 6, the unit must be"},
    {"model:\n  weights: 99999999TiB\n", TN_DEMAND_VALUE, "d.yaml: line 2: weights: \"99999999TiB\" is no size: at character 1, it is more than"},
    {"budget: lots\n", TN_DEMAND_VALUE, "d.yaml: line 1: budget: \"lots\" is no size: at character 1, a number must stand there"},
    {"model: 7\n", TN_DEMAND_VALUE, "d.yaml: line 1: model has keys of its own, and no value"},
    {"model: {layers: [4]}\n", TN_DEMAND_VALUE, "d.yaml: line 1: layers is one value, not a list"},
    {"model: {layers: {a: 4}}\n", TN_DEMAND_VALUE, "d.yaml: line 1: layers is one value, not a map"},
    {"model: {kv_tensors: 3}\n", TN_DEMAND_VALUE, "d.yaml: line 1: kv_tensors is \"3\", not a whole number from 1 to 2"},
    {"kv: {dtype: float16}\n", TN_DEMAND_VALUE, "d.yaml: line 1: dtype is \"float16\", none of f32, f16, bf16, fp8"},
    {"kv: {dtype: bf61}\n", TN_DEMAND_VALUE, "d.yaml: line 1: dtype is \"bf61\" (did you mean bf16?)"},
    {"name: ''\n", TN_DEMAND_VALUE, "d.yaml: line 1: name must be a text of 1 to 63 bytes"},
    {"name: 1234567890123456789012345678901234567890123456789012345678901234\n", TN_DEMAND_VALUE, "d.yaml: line 1: name must be"},
    {"caches: {name: x}\n", TN_DEMAND_VALUE, "d.yaml: line 1: caches is a size, or a list of items"},
    {"caches: [1MiB]\n", TN_DEMAND_VALUE, "d.yaml: line 1: an item of caches has keys"},
    {"caches: many\n", TN_DEMAND_VALUE, "d.yaml: line 1: caches: \"many\" is no size"},
    {"caches:\n- name: x\n  optional: yes\n", TN_DEMAND_VALUE, "d.yaml: line 3: optional is \"yes\", neither true nor false"},
    {MODEL "limits: {max_batch: 3, max_seq_len: 100, full_sequences: 4}\n" KV, TN_DEMAND_VALUE,
     "d.yaml: line 2: full_sequences is 4, more than max_batch, 3"},
    {"limits: {full_sequences: some}\n", TN_DEMAND_VALUE, "d.yaml: line 1: full_sequences is \"some\", not a whole number from 1 to 1000000 or all"},
    {LEAST "features:\n  sliding_window: {window: 8, layers: 5}\n", TN_DEMAND_VALUE, "d.yaml: line 5: sliding_window.layers is 5 of 4 layers"},
    {"model: {layers: 4, kv_layers: 5, kv_heads: 2, head_dim: 8, weights: 1}\n" LIMITS KV, TN_DEMAND_VALUE,
     "d.yaml: line 1: kv_layers is 5, and 4 layers have no window"},
    {LEAST "device: {granularity: 0}\n", TN_DEMAND_VALUE, "d.yaml: line 4: device.granularity is 0"},
    {LEAST "charges: {contxet: 1}\n", TN_DEMAND_UNKNOWN, "d.yaml: line 4: there is no key \"contxet\" in charges (did you mean context?)"},
};

START_TEST(what_is_wrong_is_told_in_a_sentence_with_file_and_line)
{
    const struct bad *b = &bad[_i];
    tn_demand d, before;
    memset(&d, 0x5a, sizeof(d));
    before = d;
    tn_demand_error error = parse(b->text, &d);
    ck_assert_msg(error == b->error, "%s: error %d: %s", b->text, error, message);
    ck_assert_msg(strncmp(message, b->says, strlen(b->says)) == 0, "%s: %s", b->text, message);
    ck_assert_ptr_null(strchr(message, '\n'));
    ck_assert(memcmp(&d, &before, sizeof(d)) == 0);
}
END_TEST

START_TEST(there_is_room_for_a_stated_number_of_items)
{
    char *text = malloc(65536), *p = text + sprintf(text, "%scaches:\n", LEAST);
    for (int i = 0; i < TN_DEMAND_ITEMS; i++)
        p += sprintf(p, "- {name: c%d, bytes: %d}\n", i, i);
    tn_demand d;
    ck_assert_msg(parse(text, &d) == TN_DEMAND_OK, "%s", message);
    ck_assert_uint_eq(d.item_count, TN_DEMAND_ITEMS);
    sprintf(p, "engine: 1\n");
    ck_assert(parse(text, &d) == TN_DEMAND_VALUE);
    ck_assert_ptr_nonnull(strstr(message, "more than 64 items"));
    free(text);
}
END_TEST

START_TEST(the_order_of_keys_and_the_way_of_writing_do_not_matter)
{
    tn_demand a, b;
    ck_assert_msg(parse(LEAST "budget: 2MiB\n", &a) == TN_DEMAND_OK, "%s", message);
    ck_assert_msg(parse("{\"kv\": {\"block_size\": 16, \"dtype\": \"f16\"}, \"budget\": 2097152,\n \"limits\": {\"max_seq_len\": 100, \"max_batch\": 3},\n"
                        " \"model\": {\"weights\": \"10 MiB\", \"head_dim\": 8, \"kv_heads\": 2, \"layers\": 4}}\n",
                        &b) == TN_DEMAND_OK, "%s", message);
    ck_assert(memcmp(&a, &b, sizeof(a)) == 0);
}
END_TEST

START_TEST(vectors_of_every_dtype_have_their_bytes)
{
    static const struct { const char *name; uint64_t bytes; const char *half; } rows[] = {
        {"f32", 400, "f16"}, {"f16", 200, "fp8"}, {"bf16", 200, "fp8"}, {"fp8", 100, "fp4"}, {"fp8_e4m3", 100, "fp4"}, {"fp8_e5m2", 100, "fp4"},
        {"int8", 100, "int4"}, {"int4", 50, NULL}, {"fp4", 50, NULL}, {"nvfp4", 50 + 7, NULL}};
    ck_assert_uint_eq(sizeof(rows) / sizeof(rows[0]), TN_DTYPES);
    for (size_t i = 0; i < TN_DTYPES; i++) {
        tn_dtype dtype = tn_dtype_find(rows[i].name);
        uint64_t bytes = 0;
        ck_assert(tn_dtype_vector_bytes(dtype, 100, &bytes));
        ck_assert_msg(bytes == rows[i].bytes, "%s: %" PRIu64, rows[i].name, bytes);
        ck_assert(tn_dtype_half(dtype) == (rows[i].half ? tn_dtype_find(rows[i].half) : TN_DTYPES));
        ck_assert(!tn_dtype_vector_bytes(dtype, UINT64_MAX / 2, &bytes));
    }
    ck_assert(tn_dtype_find("f8") == TN_DTYPES);
}
END_TEST

START_TEST(the_nearest_name_is_one_that_can_be_meant)
{
    static const char *const names[] = {"max_batch", "max_seq_len", NULL, "window"};
    ck_assert_str_eq(tn_nearest("max_bacth", names, 4), "max_batch");
    ck_assert_str_eq(tn_nearest("maxseqlen", names, 4), "max_seq_len");
    ck_assert_ptr_null(tn_nearest("q", names, 4));
    ck_assert_ptr_null(tn_nearest("", names, 4));
    ck_assert_uint_eq(tn_name_distance("ab", "ba"), 1);
    ck_assert_uint_eq(tn_name_distance("", "abc"), 3);
    ck_assert_uint_eq(tn_name_distance("kitten", "sitting"), 3);
    char longer[200];
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    ck_assert_uint_eq(tn_name_distance(longer, longer), 0);
}
END_TEST

/* Argument 1, where it is given: docs/DEMAND.md. */
static const char *document_path;

START_TEST(every_key_is_in_the_documentation)
{
    FILE *file = fopen(document_path, "r");
    ck_assert_msg(file != NULL, "%s", document_path);
    static char text[1 << 16];
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    size_t keys = 0;
    for (const char *path; (path = tn_demand_key(keys)); keys++) {
        char quoted[100], dotted[100];
        const char *dot = strrchr(path, '.');
        snprintf(quoted, sizeof(quoted), "`%s`", dot ? dot + 1 : path);
        snprintf(dotted, sizeof(dotted), ".%s`", dot ? dot + 1 : path);
        ck_assert_msg(strstr(text, quoted) || strstr(text, dotted), "%s is not in %s", path, document_path);
    }
    ck_assert_uint_gt(keys, 60);
    for (int i = 0; i < TN_DTYPES; i++)
        ck_assert_msg(strstr(text, tn_dtype_name((tn_dtype)i)) != NULL, "%s", tn_dtype_name((tn_dtype)i));
}
END_TEST

int main(int argc, char **argv)
{
    document_path = argc > 1 ? argv[1] : "docs/DEMAND.md";
    Suite *s = suite_create("demand");
    TCase *t = tcase_create("demand");
    tcase_add_test(t, the_least_file_has_its_defaults);
    tcase_add_test(t, every_key_reaches_its_place);
    tcase_add_test(t, a_size_alone_is_an_item_and_all_is_every_sequence);
    tcase_add_test(t, a_feature_can_stand_there_and_be_off);
    tcase_add_loop_test(t, what_is_wrong_is_told_in_a_sentence_with_file_and_line, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(t, there_is_room_for_a_stated_number_of_items);
    tcase_add_test(t, the_order_of_keys_and_the_way_of_writing_do_not_matter);
    tcase_add_test(t, vectors_of_every_dtype_have_their_bytes);
    tcase_add_test(t, the_nearest_name_is_one_that_can_be_meant);
    tcase_add_test(t, every_key_is_in_the_documentation);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
