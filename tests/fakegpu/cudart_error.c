/* Names and texts of error codes, and the public side of the last-error state. */
#include "cudart_internal.h"

struct error_row {
    cudaError_t code;
    const char *name;
    const char *text; /* NULL: the name has to do */
};

#define ERROR(code, text) {code, #code, text},

static const struct error_row rows[] = {
    ERROR(cudaSuccess, "no error")
    ERROR(cudaErrorInvalidValue, "invalid argument")
    ERROR(cudaErrorMemoryAllocation, "out of memory")
    ERROR(cudaErrorInitializationError, "initialization error")
    ERROR(cudaErrorCudartUnloading, "driver shutting down")
    ERROR(cudaErrorProfilerDisabled, NULL)
    ERROR(cudaErrorProfilerNotInitialized, NULL)
    ERROR(cudaErrorProfilerAlreadyStarted, NULL)
    ERROR(cudaErrorProfilerAlreadyStopped, NULL)
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument")
    ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument")
    ERROR(cudaErrorInvalidSymbol, "invalid device symbol")
    ERROR(cudaErrorInvalidHostPointer, NULL)
    ERROR(cudaErrorInvalidDevicePointer, NULL)
    ERROR(cudaErrorInvalidTexture, NULL)
    ERROR(cudaErrorInvalidTextureBinding, NULL)
    ERROR(cudaErrorInvalidChannelDescriptor, NULL)
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")
    ERROR(cudaErrorAddressOfConstant, NULL)
    ERROR(cudaErrorTextureFetchFailed, NULL)
    ERROR(cudaErrorTextureNotBound, NULL)
    ERROR(cudaErrorSynchronizationError, NULL)
    ERROR(cudaErrorInvalidFilterSetting, NULL)
    ERROR(cudaErrorInvalidNormSetting, NULL)
    ERROR(cudaErrorMixedDeviceExecution, NULL)
    ERROR(cudaErrorNotYetImplemented, NULL)
    ERROR(cudaErrorMemoryValueTooLarge, NULL)
    ERROR(cudaErrorStubLibrary, NULL)
    ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")
    ERROR(cudaErrorCallRequiresNewerDriver, "call requires a newer CUDA driver")
    ERROR(cudaErrorInvalidSurface, NULL)
    ERROR(cudaErrorDuplicateVariableName, NULL)
    ERROR(cudaErrorDuplicateTextureName, NULL)
    ERROR(cudaErrorDuplicateSurfaceName, NULL)
    ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable")
    ERROR(cudaErrorIncompatibleDriverContext, NULL)
    ERROR(cudaErrorMissingConfiguration, NULL)
    ERROR(cudaErrorPriorLaunchFailure, NULL)
    ERROR(cudaErrorLaunchMaxDepthExceeded, NULL)
    ERROR(cudaErrorLaunchFileScopedTex, NULL)
    ERROR(cudaErrorLaunchFileScopedSurf, NULL)
    ERROR(cudaErrorSyncDepthExceeded, NULL)
    ERROR(cudaErrorLaunchPendingCountExceeded, NULL)
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function")
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected")
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal")
    ERROR(cudaErrorDeviceNotLicensed, NULL)
    ERROR(cudaErrorSoftwareValidityNotEstablished, NULL)
    ERROR(cudaErrorStartupFailure, NULL)
    ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid")
    ERROR(cudaErrorDeviceUninitialized, "invalid device context")
    ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed")
    ERROR(cudaErrorUnmapBufferObjectFailed, NULL)
    ERROR(cudaErrorArrayIsMapped, NULL)
    ERROR(cudaErrorAlreadyMapped, "resource already mapped")
    ERROR(cudaErrorNoKernelImageForDevice, NULL)
    ERROR(cudaErrorAlreadyAcquired, NULL)
    ERROR(cudaErrorNotMapped, NULL)
    ERROR(cudaErrorNotMappedAsArray, NULL)
    ERROR(cudaErrorNotMappedAsPointer, NULL)
    ERROR(cudaErrorECCUncorrectable, NULL)
    ERROR(cudaErrorUnsupportedLimit, NULL)
    ERROR(cudaErrorDeviceAlreadyInUse, NULL)
    ERROR(cudaErrorPeerAccessUnsupported, NULL)
    ERROR(cudaErrorInvalidPtx, NULL)
    ERROR(cudaErrorInvalidGraphicsContext, NULL)
    ERROR(cudaErrorNvlinkUncorrectable, NULL)
    ERROR(cudaErrorJitCompilerNotFound, NULL)
    ERROR(cudaErrorUnsupportedPtxVersion, NULL)
    ERROR(cudaErrorJitCompilationDisabled, NULL)
    ERROR(cudaErrorUnsupportedExecAffinity, NULL)
    ERROR(cudaErrorUnsupportedDevSideSync, NULL)
    ERROR(cudaErrorContained, NULL)
    ERROR(cudaErrorInvalidSource, NULL)
    ERROR(cudaErrorFileNotFound, NULL)
    ERROR(cudaErrorSharedObjectSymbolNotFound, NULL)
    ERROR(cudaErrorSharedObjectInitFailed, NULL)
    ERROR(cudaErrorOperatingSystem, NULL)
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle")
    ERROR(cudaErrorIllegalState, NULL)
    ERROR(cudaErrorLossyQuery, NULL)
    ERROR(cudaErrorSymbolNotFound, "named symbol not found")
    ERROR(cudaErrorNotReady, "device not ready")
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered")
    ERROR(cudaErrorLaunchOutOfResources, NULL)
    ERROR(cudaErrorLaunchTimeout, NULL)
    ERROR(cudaErrorLaunchIncompatibleTexturing, NULL)
    ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")
    ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")
    ERROR(cudaErrorSetOnActiveProcess, NULL)
    ERROR(cudaErrorContextIsDestroyed, "context is destroyed")
    ERROR(cudaErrorAssert, NULL)
    ERROR(cudaErrorTooManyPeers, NULL)
    ERROR(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped")
    ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region")
    ERROR(cudaErrorHardwareStackError, NULL)
    ERROR(cudaErrorIllegalInstruction, NULL)
    ERROR(cudaErrorMisalignedAddress, NULL)
    ERROR(cudaErrorInvalidAddressSpace, NULL)
    ERROR(cudaErrorInvalidPc, NULL)
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure")
    ERROR(cudaErrorCooperativeLaunchTooLarge, NULL)
    ERROR(cudaErrorTensorMemoryLeak, NULL)
    ERROR(cudaErrorNotPermitted, "operation not permitted")
    ERROR(cudaErrorNotSupported, "operation not supported")
    ERROR(cudaErrorSystemNotReady, NULL)
    ERROR(cudaErrorSystemDriverMismatch, NULL)
    ERROR(cudaErrorCompatNotSupportedOnDevice, NULL)
    ERROR(cudaErrorMpsConnectionFailed, NULL)
    ERROR(cudaErrorMpsRpcFailure, NULL)
    ERROR(cudaErrorMpsServerNotReady, NULL)
    ERROR(cudaErrorMpsMaxClientsReached, NULL)
    ERROR(cudaErrorMpsMaxConnectionsReached, NULL)
    ERROR(cudaErrorMpsClientTerminated, NULL)
    ERROR(cudaErrorCdpNotSupported, NULL)
    ERROR(cudaErrorCdpVersionMismatch, NULL)
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")
    ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")
    ERROR(cudaErrorStreamCaptureMerge, NULL)
    ERROR(cudaErrorStreamCaptureUnmatched, NULL)
    ERROR(cudaErrorStreamCaptureUnjoined, NULL)
    ERROR(cudaErrorStreamCaptureIsolation, NULL)
    ERROR(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream")
    ERROR(cudaErrorCapturedEvent, NULL)
    ERROR(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread")
    ERROR(cudaErrorTimeout, NULL)
    ERROR(cudaErrorGraphExecUpdateFailure, "graph update not possible")
    ERROR(cudaErrorExternalDevice, NULL)
    ERROR(cudaErrorInvalidClusterSize, NULL)
    ERROR(cudaErrorFunctionNotLoaded, NULL)
    ERROR(cudaErrorInvalidResourceType, NULL)
    ERROR(cudaErrorInvalidResourceConfiguration, NULL)
    ERROR(cudaErrorUnknown, "unknown error")
};

static const struct error_row *find(cudaError_t code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

const char *cudaGetErrorName(cudaError_t error)
{
    const struct error_row *row = find(error);

    return row ? row->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    const struct error_row *row = find(error);

    if (!row)
        return "unrecognized error code";
    return row->text ? row->text : row->name;
}

/* Reading the state neither opens the driver nor creates a context. */
cudaError_t cudaGetLastError(void)
{
    cudaError_t e = *cudart_last_error();

    *cudart_last_error() = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void) { return *cudart_last_error(); }
