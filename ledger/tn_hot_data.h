/* Marks a process-wide variable that nearly every recorded call reads and hardly anything writes. All of them stand together in a section
 * of their own, on two or three cache lines, where scattered over the files' data each would cost the common path a line of its own. */
#ifndef TENURE_LEDGER_TN_HOT_DATA_H
#define TENURE_LEDGER_TN_HOT_DATA_H

#define TN_HOT_DATA __attribute__((section("tn_hot_data")))

#endif
