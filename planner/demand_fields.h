/* The language of demand files as tables: which keys stand in which section, of what kind and range, and where they go. Constant; used by
 * the reader alone. */
#ifndef TENURE_PLANNER_DEMAND_FIELDS_H
#define TENURE_PLANNER_DEMAND_FIELDS_H

#include "planner/demand.h"

typedef enum tn_field_kind {
    TN_FIELD_COUNT,     /* a whole number from min to max */
    TN_FIELD_SIZE,      /* size_text.h */
    TN_FIELD_BOOL,
    TN_FIELD_NAME,      /* a text that is not empty */
    TN_FIELD_DTYPE,
    TN_FIELD_SEQUENCES, /* a count, or "all" */
    TN_FIELD_SECTION,   /* a map */
    TN_FIELD_ITEMS      /* a size, or a list of items */
} tn_field_kind;

typedef struct tn_field {
    const char *key;
    tn_field_kind kind;
    size_t offset;     /* in a tn_demand, or of an item in a tn_demand_item; of sections 0 */
    uint64_t min, max; /* of TN_FIELD_COUNT and TN_FIELD_SEQUENCES; of TN_FIELD_ITEMS: the tier */
    bool required;
    const char *what;  /* of TN_FIELD_ITEMS: the name of what is given as a size alone */
} tn_field;

typedef struct tn_field_section {
    const char *path; /* "features.vision"; "" is the file itself */
    const tn_field *fields;
    size_t count;
    bool always;      /* its required keys must be there even where the section is not */
    size_t enabled;   /* offset of the flag that is set where the section stands in the file; TN_NO_FLAG: none */
} tn_field_section;

#define TN_NO_FLAG SIZE_MAX

extern const tn_field_section tn_demand_sections[];
extern const size_t tn_demand_section_count;
extern const tn_field_section tn_demand_item_section; /* the keys of one item; its path is "" */

/* The section of that path, or NULL. */
const tn_field_section *tn_demand_section(const char *path);

#endif
