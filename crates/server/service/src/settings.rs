//! Converts the configuration into settings for the parts of the service.

use warpgauge_config::Config;
use warpgauge_contract::ContractLimits;
use warpgauge_store::{Durability, Quotas, StoreConfig};

/// Role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// A server. It claims jobs that wait in the store, including those of dead processes.
    Server,
    /// A single command. It runs only the jobs that it created.
    Command,
}

/// Returns the limits on contracts.
pub fn limits(config: &Config) -> ContractLimits {
    ContractLimits {
        max_tensor_bytes: config.limits.max_tensor_bytes,
        max_total_bytes: config.limits.max_total_bytes,
        max_output_bytes: config.limits.max_output_bytes,
        max_decoded_bytes: config.limits.max_decoded_bytes,
        max_matrix_bytes: match config.limits.max_matrix_bytes_per_key {
            0 => config.limits.max_decoded_bytes,
            // A named matrix can be much larger than its name, as with compressed data, so the same
            // limit applies.
            bytes => bytes.min(config.limits.max_decoded_bytes),
        },
        max_sweep_points: config.limits.max_sweep_points,
        ..ContractLimits::default()
    }
}

/// Returns the configuration of the store.
pub(super) fn store_config(config: &Config) -> StoreConfig {
    let limits = &config.limits;
    let storage = &config.storage;
    StoreConfig {
        url: storage.database_url.clone(),
        durability: match storage.durability.as_str() {
            "power" => Durability::Power,
            _ => Durability::Process,
        },
        quotas: Quotas {
            max_waiting: limits.max_queued_per_key,
            max_running: limits.max_running_per_key,
        },
        artifacts_max_bytes: storage.artifacts_max_bytes,
        ..StoreConfig::new(config.data_dir())
    }
}
