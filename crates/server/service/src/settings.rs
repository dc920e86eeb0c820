//! What parts of the service take from the configuration.

use warpgauge_config::Config;
use warpgauge_contract::ContractLimits;
use warpgauge_store::{Durability, Quotas, StoreConfig};

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// It serves others: takes on jobs that wait in the store, also those of processes that are gone.
    Server,
    /// It does what one command asks for, and nothing else.
    Command,
}

/// What contracts may ask for, by the configuration.
pub fn limits(config: &Config) -> ContractLimits {
    ContractLimits {
        max_tensor_bytes: config.limits.max_tensor_bytes,
        max_total_bytes: config.limits.max_total_bytes,
        max_output_bytes: config.limits.max_output_bytes,
        max_decoded_bytes: config.limits.max_decoded_bytes,
        max_matrix_bytes: match config.limits.max_matrix_bytes_per_key {
            0 => config.limits.max_decoded_bytes,
            // A name is as short as compressed data: it becomes no more than they may.
            bytes => bytes.min(config.limits.max_decoded_bytes),
        },
        max_sweep_points: config.limits.max_sweep_points,
        ..ContractLimits::default()
    }
}

/// Where the store is, by the configuration.
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
