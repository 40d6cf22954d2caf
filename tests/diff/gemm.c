/* The first matrix product through cuBLAS in a program whose runtime is static or shared: results, and memory that stays. */
#include "observe.h"

#include <cublas_v2.h>

#define N 64

int main(void)
{
	static float a[N * N], b[N * N], c[N * N];
	float *da, *db, *dc, one = 1, zero = 0;
	cublasHandle_t handle;
	size_t before = 0, during = 0, after = 0;
	double sum = 0;
	for (int i = 0; i < N * N; i++) {
		a[i] = (float)(i % 7);
		b[i] = (float)(i % 5);
	}
	obs_last("made", (int)cudaMalloc((void **)&da, sizeof a) | (int)cudaMalloc((void **)&db, sizeof b) | (int)cudaMalloc((void **)&dc, sizeof c));
	obs_last("in", (int)cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice) | (int)cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
	obs_last("query", cudaMemGetInfo(&before, NULL));
	obs_code("create", cublasCreate(&handle));
	obs_code("gemm", cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, da, N, db, N, &zero, dc, N));
	obs_last("out", cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N * N; i++)
		sum += c[i];
	obs("sum", "%.0f", sum);
	obs_last("query.2", cudaMemGetInfo(&during, NULL));
	obs_code("took_memory", before - during > MIB);
	obs_code("destroy", cublasDestroy(handle));
	obs_last("query.3", cudaMemGetInfo(&after, NULL));
	obs_code("gave_some_back", after >= during);
	obs_code("refused", cudaMalloc((void **)&dc, TOO_MUCH));
	obs_last("last", (int)cudaFree(da) | (int)cudaFree(db));
	return 0;
}
