/* Memory queries with either or both outputs NULL, at both levels; totals and the fall of the free figure agree. */
#include "observe.h"

int main(void)
{
	size_t free_before = 0, total = 0, free_after = 0, total2 = 0, used;
	void *p = NULL;
	obs_code("before_init.cuMemGetInfo", cuMemGetInfo(&free_before, &total));
	obs_code("init", cuInit(0));
	obs_code("no_context.cuMemGetInfo", cuMemGetInfo(&free_before, &total));
	obs_code("active_before", primary_active(0));
	obs_last("cudaMemGetInfo", cudaMemGetInfo(&free_before, &total));
	obs_code("active_after", primary_active(0));
	obs_last("null_free", cudaMemGetInfo(NULL, &total2));
	obs_code("totals_agree", total == total2);
	obs_last("null_total", cudaMemGetInfo(&free_after, NULL));
	obs_last("null_both", cudaMemGetInfo(NULL, NULL));
	obs_code("driver.null_free", cuMemGetInfo(NULL, &total2));
	obs_code("driver.totals_agree", total == total2);
	obs_code("driver.null_total", cuMemGetInfo(&free_after, NULL));
	obs_code("driver.null_both", cuMemGetInfo(NULL, NULL));
	obs_code("total_mem", cuDeviceTotalMem(&total2, 0));
	obs_code("total_mem_agrees", total == total2);
	obs_code("total_mem.bad_device", cuDeviceTotalMem(&total2, 77));
	obs_last("malloc", cudaMalloc(&p, 64 * MIB));
	obs_last("query", cudaMemGetInfo(&free_after, NULL));
	used = free_before - free_after;
	obs("fell_MiB", "%zu", used / MIB);
	obs_code("driver_query", cuMemGetInfo(&free_before, NULL));
	obs_code("levels_agree", free_before == free_after);
	obs_last("free", cudaFree(p));
	obs_last("query.2", cudaMemGetInfo(&free_after, NULL));
	obs("came_back_MiB", "%zu", (free_after - free_before) / MIB);
	return 0;
}
