#include "app/features.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[F_COUNT] = {
    [F_BALLOON] = "balloon",
    [F_KV_FROM_FREE] = "kv_from_free",
    [F_WORKSPACE_LADDER] = "workspace_ladder",
    [F_HEADROOM_SMALL] = "headroom_small",
    [F_HEADROOM_FORCE] = "headroom_force",
    [F_HEADROOM_RETRY] = "headroom_retry",
    [F_ROLLBACK_GROUPS] = "rollback_groups",
    [F_BEST_EFFORT] = "best_effort",
    [F_FIRST_FORWARD] = "first_forward",
    [F_LOAD_TRANSIENTS] = "load_transients",
    [F_LOADER_THREADS] = "loader_threads",
    [F_DRAFT_MODEL] = "draft_model",
    [F_MODEL_SWAP] = "model_swap",
    [F_SWAP_FAILURE] = "swap_failure",
    [F_PREFIX_SHARING] = "prefix_sharing",
    [F_PREFIX_PINNING] = "prefix_pinning",
    [F_PREFIX_PERSIST] = "prefix_persist",
    [F_STREAMING_HOLES] = "streaming_holes",
    [F_CANCELLATION] = "cancellation",
    [F_SPEC_TOGGLE] = "spec_toggle",
    [F_GRAPH_CAPTURE] = "graph_capture",
    [F_GRAPH_GROW] = "graph_grow",
    [F_FIFO_SCRATCH] = "fifo_scratch",
    [F_LIFO_SCRATCH] = "lifo_scratch",
    [F_FREE_OTHER_FAMILY] = "free_other_family",
    [F_POOL_THRESHOLD] = "pool_threshold",
    [F_POOL_WATERMARK] = "pool_watermark",
    [F_INIT_AFTER_SERVING] = "init_after_serving",
    [F_OVERRUN_SLACK] = "overrun_slack",
    [F_CUTLASS_LAZY_GROWTH] = "cutlass_lazy_growth",
    [F_MEMORY_TRIM] = "memory_trim",
};

static bool off[F_COUNT];

bool feature_on(enum feature f)
{
    return !off[f];
}

bool feature_switch_off(const char *name)
{
    for (int i = 0; i < F_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            off[i] = true;
            return true;
        }
    }
    return false;
}

void feature_list(void)
{
    for (int i = 0; i < F_COUNT; i++)
        puts(names[i]);
}

void behaviour(enum feature f, const char *fmt, ...)
{
    va_list ap;
    printf("behaviour %s ", names[f]);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}
