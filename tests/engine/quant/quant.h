/* Quantisation of activations and weights.
 *
 * Three formats, each with the scratch of its kernels as statics: calibration
 * and weight conversion at load, activation rows while serving. Main thread. */
#ifndef ENGINE_QUANT_QUANT_H
#define ENGINE_QUANT_QUANT_H

#include "app/engine.h"

void quant_fp8_init(struct engine *eng);
void quant_fp8_rows(void *out, const void *in, cudaStream_t stream);
void quant_fp8_release(void);

void quant_nvfp4_init(struct engine *eng);
/* Converts one weight; takes transients and gives them back. */
void quant_nvfp4_convert(struct engine *eng, void *out, const void *weight, cudaStream_t stream);
void quant_nvfp4_release(void);

void quant_q8_init(struct engine *eng);
void quant_q8_rows(struct engine *eng, void *out, const void *in, cudaStream_t stream);
void quant_q8_release(void);

#endif
