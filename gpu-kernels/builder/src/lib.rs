//! Builds the device code. (Stub: see the issue.)
