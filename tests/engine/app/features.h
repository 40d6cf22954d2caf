/* Names of the engine's memory behaviours and their switches.
 *
 * Every behaviour is on unless `--feature-off NAME` removed it; the switches
 * are set while the options are read and never change afterwards, so any
 * thread may ask. A behaviour reports itself in one printed line, made from
 * what was counted where it happened. */
#ifndef ENGINE_APP_FEATURES_H
#define ENGINE_APP_FEATURES_H

#include <stdbool.h>

enum feature {
    F_BALLOON,
    F_KV_FROM_FREE,
    F_WORKSPACE_LADDER,
    F_HEADROOM_SMALL,
    F_HEADROOM_FORCE,
    F_HEADROOM_RETRY,
    F_ROLLBACK_GROUPS,
    F_BEST_EFFORT,
    F_FIRST_FORWARD,
    F_LOAD_TRANSIENTS,
    F_LOADER_THREADS,
    F_DRAFT_MODEL,
    F_MODEL_SWAP,
    F_SWAP_FAILURE,
    F_PREFIX_SHARING,
    F_PREFIX_PINNING,
    F_PREFIX_PERSIST,
    F_STREAMING_HOLES,
    F_CANCELLATION,
    F_SPEC_TOGGLE,
    F_GRAPH_CAPTURE,
    F_GRAPH_GROW,
    F_FIFO_SCRATCH,
    F_LIFO_SCRATCH,
    F_FREE_OTHER_FAMILY,
    F_POOL_THRESHOLD,
    F_POOL_WATERMARK,
    F_INIT_AFTER_SERVING,
    F_OVERRUN_SLACK,
    F_CUTLASS_LAZY_GROWTH,
    F_MEMORY_TRIM,
    F_COUNT
};

/* True unless the behaviour was switched off. */
bool feature_on(enum feature f);

/* Switches one behaviour off by name; false if the name is unknown. */
bool feature_switch_off(const char *name);

/* Prints every name, one a line. */
void feature_list(void);

/* Prints `behaviour NAME ` and the formatted rest. */
void behaviour(enum feature f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
