/* Which frames a person skips, by one table of rules: runs of frames that belong to one layer are shown as that layer. Pure;
 * any thread. */
#ifndef TENURE_REPORT_REPORT_FOLD_H
#define TENURE_REPORT_REPORT_FOLD_H

/* The layer that a frame belongs to: constant text, the same pointer for the same layer; NULL where the frame is to be
 * shown. `function` as tn_short_name gives it, or NULL; `module` a file name, or NULL. */
const char *tn_fold_layer(const char *module, const char *function);

#endif
