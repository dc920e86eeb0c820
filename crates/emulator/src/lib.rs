//! A CPU implementation of the CUDA driver API that executes PTX.
