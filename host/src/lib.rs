//! tilewise. (Stub.)
