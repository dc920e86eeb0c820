//! Numbers from samples: pure statistics.

mod stats;

pub use stats::{
    Sorted, coefficient_of_variation, lag1_autocorrelation, mean, runtime_stats, sample_std,
};
