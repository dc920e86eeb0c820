//! Numbers from samples: pure statistics.
