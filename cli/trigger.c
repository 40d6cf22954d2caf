/* Triggers as a person writes them. */
#define _GNU_SOURCE
#include "cli/trigger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phaseguard/call_name.h"

/* The API table's names, which a call: trigger may name. */
static const char *const rows[] = {
#define TN_DRIVER(klass, variant, name, ...) #name,
#define TN_RUNTIME TN_DRIVER
#define TN_NVML(klass, name, ...) #name,
#include "shim/api_all.def"
};

int tn_trigger_regex(const char *text, regex_t *out, char message[TN_TRIGGER_MESSAGE])
{
    char why[200];
    int error = *text ? regcomp(out, text, REG_EXTENDED | REG_NOSUB) : REG_BADPAT;
    if (!error)
        return 0;
    if (*text)
        regerror(error, out, why, sizeof(why));
    else
        snprintf(why, sizeof(why), "it is empty");
    snprintf(message, TN_TRIGGER_MESSAGE, "%.200s is no regular expression: %s", text, why);
    return -1;
}

static int parse_port(const char *text, unsigned *out)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > 65535)
        return -1;
    *out = (unsigned)n;
    return 0;
}

/* HOST[:PORT][/PATH], with or without http:// before it; an IPv6 address in brackets. */
static int parse_url(const char *text, tn_trigger *t)
{
    if (strncmp(text, "//", 2) == 0)
        text += 2;
    size_t host = *text == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":/");
    const char *rest = text + host;
    int brackets = *text == '[';
    if (host - 2 * (size_t)brackets == 0 || host >= sizeof(t->host) || (brackets && text[host - 1] != ']'))
        return -1;
    snprintf(t->host, sizeof(t->host), "%.*s", (int)(host - 2 * (size_t)brackets), text + brackets);
    snprintf(t->service, sizeof(t->service), "80");
    if (*rest == ':') {
        char digits[8];
        size_t n = strcspn(++rest, "/");
        unsigned port;
        if (n == 0 || n >= sizeof(digits))
            return -1;
        snprintf(digits, sizeof(digits), "%.*s", (int)n, rest);
        if (parse_port(digits, &port) != 0)
            return -1;
        snprintf(t->service, sizeof(t->service), "%u", port);
        rest += n;
    }
    if (*rest && *rest != '/')
        return -1;
    if (strpbrk(rest, " \r\n") || strlen(rest) >= sizeof(t->path))
        return -1;
    snprintf(t->path, sizeof(t->path), "%s", *rest ? rest : "/");
    return 0;
}

static int parse_call(const char *text, tn_trigger *t)
{
    const char *colon = strrchr(text, ':');
    char *end;
    if (!colon || colon == text || strlen(text) >= sizeof(t->call))
        return -1;
    errno = 0;
    unsigned long long n = strtoull(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end || errno || n == 0 || n > 1000000000000000000ull)
        return -1;
    snprintf(t->call, sizeof(t->call), "%s", text);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (tn_call_is_named(rows[i], text, (size_t)(colon - text)))
            return 0;
    return -2;
}

int tn_trigger_parse(const char *text, tn_trigger *out, char message[TN_TRIGGER_MESSAGE])
{
    const char *colon = strchr(text, ':'), *rest = colon ? colon + 1 : "";
    size_t word = colon ? (size_t)(colon - text) : strlen(text);
    char *end;
    int error;
#define IS(name) (word == sizeof(name) - 1 && strncmp(text, name, word) == 0)
    *out = (tn_trigger){0};
    if (IS("line")) {
        error = tn_trigger_regex(rest, &out->regex, message);
        out->type = error ? TN_TRIGGER_NONE : TN_TRIGGER_LINE;
        return error;
    }
    if (IS("port")) {
        out->type = TN_TRIGGER_PORT;
        if (parse_port(rest, &out->port) == 0)
            return 0;
        snprintf(message, TN_TRIGGER_MESSAGE, "port: needs a number from 1 to 65535, not %.100s", rest);
    } else if (IS("http")) {
        out->type = TN_TRIGGER_HTTP;
        if (parse_url(rest, out) == 0)
            return 0;
        snprintf(message, TN_TRIGGER_MESSAGE, "http: needs HOST[:PORT]/PATH, not %.200s", rest);
    } else if (IS("https")) {
        snprintf(message, TN_TRIGGER_MESSAGE, "https is not spoken: name a readiness URL that answers by http, a port or a line");
    } else if (IS("call")) {
        out->type = TN_TRIGGER_CALL;
        error = parse_call(rest, out);
        if (error == 0)
            return 0;
        if (error == -2)
            snprintf(message, TN_TRIGGER_MESSAGE, "call: names no function that is hooked: %.160s", rest);
        else
            snprintf(message, TN_TRIGGER_MESSAGE, "call: needs NAME:N with N from 1 on, not %.160s", rest);
    } else if (IS("quiet")) {
        out->type = TN_TRIGGER_QUIET;
        out->seconds = strtod(rest, &end);
        if (end != rest && !*end && out->seconds >= 0.1 && out->seconds <= 1e6)
            return 0;
        snprintf(message, TN_TRIGGER_MESSAGE, "quiet: needs a number of seconds from 0.1 on, not %.100s", rest);
    } else {
        snprintf(message, TN_TRIGGER_MESSAGE, "%.100s is no trigger: line:REGEX, port:N, http:URL, call:NAME:N and quiet:SECONDS are", text);
    }
#undef IS
    *out = (tn_trigger){0};
    return -1;
}

void tn_trigger_free(tn_trigger *t)
{
    if (t->type == TN_TRIGGER_LINE)
        regfree(&t->regex);
    t->type = TN_TRIGGER_NONE;
}
