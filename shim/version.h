/* The version of the shim and the command, 0xMMmmpp. */
#ifndef TENURE_SHIM_VERSION_H
#define TENURE_SHIM_VERSION_H

#define TN_SHIM_VERSION 0x000100u

#endif
