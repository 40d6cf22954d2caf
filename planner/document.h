/* A small file that a person writes, as a tree that knows its places: YAML 1.1 as libyaml reads it (a JSON file is one, too), without
 * anchors, tags and second documents. Every value is kept as the text that was written; what it means is its reader's to say, so that no
 * "no" turns into false. A document owns all its nodes and texts until tn_document_free; one thread at a time. */
#ifndef TENURE_PLANNER_DOCUMENT_H
#define TENURE_PLANNER_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

typedef enum tn_document_error {
    TN_DOCUMENT_OK = 0,
    TN_DOCUMENT_OPEN,  /* the file cannot be opened or read */
    TN_DOCUMENT_LARGE, /* more bytes, nodes or depth than a file of this kind has */
    TN_DOCUMENT_SYNTAX,/* no YAML, or YAML of the kinds not taken here */
    TN_DOCUMENT_NOMEM
} tn_document_error;

typedef enum tn_node_kind { TN_NODE_SCALAR = 0, TN_NODE_MAP, TN_NODE_LIST } tn_node_kind;

typedef struct tn_node tn_node;
struct tn_node {
    tn_node_kind kind;
    uint32_t line, column;  /* from 1, of the value, and where it has a key, of that */
    const char *key;        /* in a map; else NULL. UTF-8, no control character, as is every text */
    const char *text;       /* of a scalar; "" where nothing was written; NULL of the others */
    int quoted;             /* the scalar stood in quotes or in a block */
    const tn_node *first, *next; /* children in the file's order; the next child of the same parent */
    size_t count;           /* of children */
};

typedef struct tn_document tn_document;

enum {
    TN_DOCUMENT_MESSAGE = 512,
    TN_DOCUMENT_BYTES = 1 << 20, /* limits */
    TN_DOCUMENT_NODES = 65536,
    TN_DOCUMENT_KEYS = 256, /* of one map */
    TN_DOCUMENT_DEPTH = 16
};

/* Reads the file `path`, or the `length` bytes at `bytes` under the name `name`. On failure *out is NULL and `message` is one sentence
 * without a full stop that names the file and, where there is one, the line. The root is always a map; a key stands in it once. */
tn_document_error tn_document_load(const char *path, tn_document **out, char message[TN_DOCUMENT_MESSAGE]);
tn_document_error tn_document_parse(const char *name, const void *bytes, size_t length, tn_document **out,
                                    char message[TN_DOCUMENT_MESSAGE]);
void tn_document_free(tn_document *document);

const tn_node *tn_document_root(const tn_document *document);
const char *tn_document_name(const tn_document *document);
/* The child of that key, or NULL. */
const tn_node *tn_node_find(const tn_node *map, const char *key);

/* Writes "NAME: line N: " and the sentence (printf) into `message`; a node of NULL gives no line. */
void tn_document_say(const char *name, const tn_node *node, char message[TN_DOCUMENT_MESSAGE], const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
