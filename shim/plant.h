/* Points at which a test's build of this library plants a fault, to show that the fault would be noticed. A build that names
 * no header of plants, which is every build that is shipped, has nothing there. */
#ifndef TENURE_SHIM_PLANT_H
#define TENURE_SHIM_PLANT_H

#ifdef TN_PLANTS
#include TN_PLANTS
#define TN_PLANT_POINT(point, what) tn_plant_##point(what)
#else
#define TN_PLANT_POINT(point, what) ((void)0)
#endif

#endif
