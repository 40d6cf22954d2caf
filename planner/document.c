/* libyaml's events into a tree. Nodes and texts are allocated one by one and chained in the document, which frees them together. */
#define _GNU_SOURCE
#include "planner/document.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "planner/text_file.h"

typedef struct block { /* what was allocated, newest first */
    struct block *next;
    max_align_t bytes[];
} block;

struct tn_document {
    char *name;
    block *blocks;
    size_t nodes;
    tn_node *root;
};

typedef struct building {
    tn_document *document;
    char *message;
    tn_document_error error;
    struct {
        tn_node *node, *last; /* an open map or list and its newest child */
        const char *key;      /* of a map: the key that waits for its value */
        uint32_t line, column;
    } open[TN_DOCUMENT_DEPTH];
    size_t depth;
} building;

void tn_document_say(const char *name, const tn_node *node, char message[TN_DOCUMENT_MESSAGE], const char *format, ...)
{
    size_t used = (size_t)snprintf(message, TN_DOCUMENT_MESSAGE, "%.200s: ", name);
    if (node)
        used += (size_t)snprintf(message + used, TN_DOCUMENT_MESSAGE - used, "line %u: ", node->line);
    va_list args;
    va_start(args, format);
    vsnprintf(message + used, TN_DOCUMENT_MESSAGE - used, format, args);
    va_end(args);
    tn_text_mask(message); /* what is quoted may hold anything: a tag's %0a, a path */
}

static bool fail(building *b, tn_document_error error, const yaml_mark_t *mark, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool fail(building *b, tn_document_error error, const yaml_mark_t *mark, const char *format, ...)
{
    char sentence[TN_DOCUMENT_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    tn_node at = {.line = mark ? (uint32_t)mark->line + 1 : 0};
    tn_document_say(b->document->name, mark ? &at : NULL, b->message, "%s", sentence);
    b->error = error;
    return false;
}

static void *take(building *b, size_t bytes)
{
    block *fresh = calloc(1, sizeof(block) + bytes);
    if (!fresh) {
        fail(b, TN_DOCUMENT_NOMEM, NULL, "no host memory is left");
        return NULL;
    }
    fresh->next = b->document->blocks;
    b->document->blocks = fresh;
    return fresh->bytes;
}

/* A C0 or C1 control character, or DEL; blanks and line ends inside a text are none of a name's or a number's. */
static bool has_control(const unsigned char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] == 0x7f || (text[i] == 0xc2 && i + 1 < length && text[i + 1] < 0xa0))
            return true;
    return false;
}

static const char *keep_text(building *b, const yaml_event_t *event)
{
    const unsigned char *text = event->data.scalar.value;
    size_t length = event->data.scalar.length;
    /* A block scalar ends in the line end that its style keeps. */
    while (length > 0 && event->data.scalar.style >= YAML_LITERAL_SCALAR_STYLE && text[length - 1] == '\n')
        length--;
    if (has_control(text, length)) {
        fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "a text holds a control character");
        return NULL;
    }
    char *copy = take(b, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

const tn_node *tn_node_find(const tn_node *map, const char *key)
{
    for (const tn_node *child = map->first; child; child = child->next)
        if (child->key && strcmp(child->key, key) == 0)
            return child;
    return NULL;
}

static tn_node *add_node(building *b, tn_node_kind kind, const yaml_event_t *event)
{
    if (++b->document->nodes > TN_DOCUMENT_NODES) {
        fail(b, TN_DOCUMENT_LARGE, &event->start_mark, "more than %d values", TN_DOCUMENT_NODES);
        return NULL;
    }
    tn_node *node = take(b, sizeof(*node));
    if (!node)
        return NULL;
    node->kind = kind;
    node->line = (uint32_t)event->start_mark.line + 1;
    node->column = (uint32_t)event->start_mark.column + 1;
    if (b->depth == 0) {
        b->document->root = node;
        return node;
    }
    size_t top = b->depth - 1;
    tn_node *parent = b->open[top].node;
    if (parent->kind == TN_NODE_MAP) {
        node->key = b->open[top].key;
        node->line = b->open[top].line;
        node->column = b->open[top].column;
        b->open[top].key = NULL;
    }
    if (b->open[top].last)
        b->open[top].last->next = node;
    else
        parent->first = node;
    b->open[top].last = node;
    parent->count++;
    return node;
}

static bool waits_for_key(const building *b)
{
    return b->depth > 0 && b->open[b->depth - 1].node->kind == TN_NODE_MAP && !b->open[b->depth - 1].key;
}

static bool add_scalar(building *b, const yaml_event_t *event)
{
    if (b->depth == 0)
        return fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "keys with values must stand there, such as \"model:\"");
    const char *text = keep_text(b, event);
    if (!text)
        return false;
    if (!waits_for_key(b)) {
        tn_node *node = add_node(b, TN_NODE_SCALAR, event);
        if (node) {
            node->text = text;
            node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        }
        return node != NULL;
    }
    size_t top = b->depth - 1;
    if (b->open[top].node->count == TN_DOCUMENT_KEYS)
        return fail(b, TN_DOCUMENT_LARGE, &event->start_mark, "more than %d keys in one map", TN_DOCUMENT_KEYS);
    const tn_node *earlier = tn_node_find(b->open[top].node, text);
    if (earlier)
        return fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "\"%.60s\" stands on line %u already", text, earlier->line);
    b->open[top].key = text;
    b->open[top].line = (uint32_t)event->start_mark.line + 1;
    b->open[top].column = (uint32_t)event->start_mark.column + 1;
    return true;
}

static bool open_node(building *b, tn_node_kind kind, const yaml_event_t *event)
{
    if (waits_for_key(b))
        return fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "a key is a word, not a list or a map");
    if (b->depth == 0 && kind != TN_NODE_MAP)
        return fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "keys with values must stand there, such as \"model:\"");
    if (b->depth == TN_DOCUMENT_DEPTH)
        return fail(b, TN_DOCUMENT_LARGE, &event->start_mark, "more than %d levels of lists and maps", TN_DOCUMENT_DEPTH);
    tn_node *node = add_node(b, kind, event);
    if (!node)
        return false;
    b->open[b->depth].node = node;
    b->open[b->depth].last = NULL;
    b->open[b->depth].key = NULL;
    b->depth++;
    return true;
}

static bool no_extras(building *b, const yaml_event_t *event, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "anchors (&%.40s) are not taken here", (const char *)anchor);
    if (tag)
        return fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "tags (%.40s) are not taken here", (const char *)tag);
    return true;
}

static bool take_event(building *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return !b->document->root || fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "a second document begins there");
    case YAML_ALIAS_EVENT:
        return fail(b, TN_DOCUMENT_SYNTAX, &event->start_mark, "aliases (*%.40s) are not taken here", (const char *)event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        return no_extras(b, event, event->data.scalar.anchor, event->data.scalar.tag) && add_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return no_extras(b, event, event->data.sequence_start.anchor, event->data.sequence_start.tag) && open_node(b, TN_NODE_LIST, event);
    case YAML_MAPPING_START_EVENT:
        return no_extras(b, event, event->data.mapping_start.anchor, event->data.mapping_start.tag) && open_node(b, TN_NODE_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return true;
    default:
        return true;
    }
}

static bool parser_failed(building *b, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return fail(b, TN_DOCUMENT_NOMEM, NULL, "no host memory is left");
    const char *problem = parser->problem ? parser->problem : "it cannot be read";
    if (parser->error == YAML_READER_ERROR) /* has an offset and no line */
        return fail(b, TN_DOCUMENT_SYNTAX, NULL, "byte %zu: %s", parser->problem_offset, problem);
    return fail(b, TN_DOCUMENT_SYNTAX, &parser->problem_mark, "%s%s%s", problem, parser->context ? " " : "",
                parser->context ? parser->context : "");
}

static bool build(building *b, yaml_parser_t *parser)
{
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return parser_failed(b, parser);
        more = event.type != YAML_STREAM_END_EVENT;
        bool taken = take_event(b, &event);
        yaml_event_delete(&event);
        if (!taken)
            return false;
    }
    return b->document->root || fail(b, TN_DOCUMENT_SYNTAX, NULL, "there is nothing in it");
}

tn_document_error tn_document_parse(const char *name, const void *bytes, size_t length, tn_document **out,
                                    char message[TN_DOCUMENT_MESSAGE])
{
    *out = NULL;
    tn_document *document = calloc(1, sizeof(*document));
    if (document && !(document->name = strdup(name))) {
        free(document);
        document = NULL;
    }
    yaml_parser_t parser;
    if (!document || !yaml_parser_initialize(&parser)) {
        tn_document_free(document);
        tn_document_say(name, NULL, message, "no host memory is left");
        return TN_DOCUMENT_NOMEM;
    }
    building b = {.document = document, .message = message};
    if (length > TN_DOCUMENT_BYTES) {
        fail(&b, TN_DOCUMENT_LARGE, NULL, "more than %d bytes", TN_DOCUMENT_BYTES);
    } else {
        yaml_parser_set_input_string(&parser, bytes, length);
        if (build(&b, &parser))
            *out = document;
    }
    yaml_parser_delete(&parser);
    if (!*out)
        tn_document_free(document);
    return b.error;
}

tn_document_error tn_document_load(const char *path, tn_document **out, char message[TN_DOCUMENT_MESSAGE])
{
    *out = NULL;
    char *bytes;
    size_t length;
    int error = tn_text_file_read(path, TN_DOCUMENT_BYTES, &bytes, &length);
    if (error == EFBIG) {
        tn_document_say(path, NULL, message, "more than %d bytes", TN_DOCUMENT_BYTES);
        return TN_DOCUMENT_LARGE;
    }
    if (error) {
        tn_document_say(path, NULL, message, "it cannot be read: %s", strerror(error));
        return error == ENOMEM ? TN_DOCUMENT_NOMEM : TN_DOCUMENT_OPEN;
    }
    tn_document_error result = tn_document_parse(path, bytes, length, out, message);
    free(bytes);
    return result;
}

void tn_document_free(tn_document *document)
{
    if (!document)
        return;
    for (block *b = document->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(document->name);
    free(document);
}

const tn_node *tn_document_root(const tn_document *document) { return document->root; }
const char *tn_document_name(const tn_document *document) { return document->name; }
