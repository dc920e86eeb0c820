//! warpgauge
