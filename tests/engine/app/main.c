#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/features.h"
#include "app/phases.h"
#include "core/probe.h"

static const char usage[] =
    "usage: legacy_engine --config dense|moe|vision [--requests N] [--seed N]\n"
    "                     [--feature-off NAME]... [--until PHASE] [--list-features]\n"
    "                     [--instrumented]\n";

static const struct option options[] = {
    { "config", required_argument, NULL, 'c' },
    { "requests", required_argument, NULL, 'r' },
    { "seed", required_argument, NULL, 's' },
    { "feature-off", required_argument, NULL, 'f' },
    { "until", required_argument, NULL, 'u' },
    { "instrumented", no_argument, NULL, 'i' },
    { "list-features", no_argument, NULL, 'l' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static int usage_error(const char *what, const char *value)
{
    fprintf(stderr, "engine: %s '%s'\n%s", what, value, usage);
    return 2;
}

int main(int argc, char **argv)
{
    struct engine eng = { .rng = 0x9e3779b97f4a7c15ULL, .n_requests = 12 };
    struct server srv = { .eng = &eng };
    const char *until = NULL;
    int opt;

    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (opt) {
        case 'c':
            eng.cfg = config_find(optarg);
            if (eng.cfg == NULL)
                return usage_error("unknown configuration", optarg);
            break;
        case 'r':
            eng.n_requests = atoi(optarg);
            if (eng.n_requests < 1 || eng.n_requests > MAX_REQUESTS)
                return usage_error("not a number of requests", optarg);
            break;
        case 's':
            eng.rng ^= strtoull(optarg, NULL, 0) * 0xff51afd7ed558ccdULL;
            break;
        case 'f':
            if (!feature_switch_off(optarg))
                return usage_error("unknown feature", optarg);
            break;
        case 'u':
            until = optarg;
            break;
        case 'i':
            eng.instrumented = true;
            break;
        case 'l':
            feature_list();
            return 0;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (eng.cfg == NULL || optind != argc) {
        fputs(usage, stderr);
        return 2;
    }

    printf("engine config=%s requests=%d\n", eng.cfg->name, eng.n_requests);
    phases_run(&srv, until);
    int live = probe_sweep();
    printf("live_at_exit=%d\n", live);
    printf("checksum=0x%016llx\n", (unsigned long long)probe_checksum());
    probe_shutdown();
    return 0;
}
