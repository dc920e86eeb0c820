//! What the configuration says about the store.

use std::path::Path;
use std::time::Duration;

use super::{Durability, Quotas, Retention, StoreConfig};
use crate::config::Config;

impl StoreConfig {
    /// As configured, in this data directory.
    pub fn configured(config: &Config, data_dir: &Path) -> Self {
        let power = config.storage.durability == "power";
        Self {
            url: config.storage.database_url.clone(),
            data_dir: data_dir.to_owned(),
            durability: if power { Durability::Power } else { Durability::Process },
            quotas: Quotas {
                max_waiting: config.limits.max_queued_per_key,
                max_running: config.limits.max_running_per_key,
            },
            artifacts_max_bytes: config.storage.artifacts_max_bytes,
        }
    }
}

impl Retention {
    /// As configured.
    pub fn configured(config: &Config) -> Self {
        let storage = &config.storage;
        let days = storage.keep_days;
        Self {
            max_age: (days > 0.0).then(|| Duration::from_secs_f64(days * 86_400.0)),
            max_jobs: storage.keep_jobs,
            max_bytes: storage.keep_bytes,
            max_points: Some(storage.keep_points).filter(|points| *points > 0),
        }
    }
}
