/* tenure_tiers.h: allocators that give each lifetime its own discipline, over one interface to where memory comes from. This header is
 * all that a program includes; it needs no GPU and no Tenure beside it. Each part says who owns what and which threads may call.
 * Sizes are bytes; addresses are the backend's, not to be touched by the host unless the backend is of host memory. */
#ifndef TENURE_TIERS_TENURE_TIERS_H
#define TENURE_TIERS_TENURE_TIERS_H

#include "tiers/arena.h"
#include "tiers/backend.h"
#include "tiers/backend_async.h"
#include "tiers/backend_driver.h"
#include "tiers/backend_pinned.h"
#include "tiers/backend_vmm.h"
#include "tiers/block.h"
#include "tiers/block_pool.h"
#include "tiers/cuda_calls.h"
#include "tiers/cuda_error.h"
#include "tiers/error.h"
#include "tiers/fixed.h"
#include "tiers/handle_pool.h"
#include "tiers/host_registration.h"
#include "tiers/load_staging.h"
#include "tiers/metadata.h"
#include "tiers/packed.h"
#include "tiers/packed_plan.h"
#include "tiers/pinned_slabs.h"
#include "tiers/scratch.h"
#include "tiers/seam.h"
#include "tiers/span.h"
#include "tiers/stable_slots.h"
#include "tiers/work_mark.h"

#endif
