//! What goes back to the caller.
