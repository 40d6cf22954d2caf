/* The vision tower: resident weights and the buffers of one image at a time.
 *
 * Loaded with the features, released at shutdown; used by the scheduler's
 * thread. A configuration without vision loads a tower of token size. */
#ifndef ENGINE_VISION_VISION_H
#define ENGINE_VISION_VISION_H

#include "app/engine.h"

/* False if the tracked allocator refuses a part; nothing stays then. */
bool vision_load(struct engine *eng);

/* Encodes one image; the result stays valid until the next call. */
const void *vision_encode(struct engine *eng, int image);
void vision_release(void);

#endif
