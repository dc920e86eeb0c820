//! Configuration of the server. The embedded, commented `default.toml` contains the defaults and is
//! also the template. The main type is [`Config`].
//!
//! The sources are, in increasing priority: embedded defaults, `--config FILE`, environment,
//! command line. [`Config::load`] merges them; [`Config::load_with_origins`] also returns the
//! origin of each value. Every setting is one entry of the table in [`settings`], with its key,
//! type, range and environment variable.

#![forbid(unsafe_code)]

mod error;
mod load;
pub mod settings;
mod values;

use serde::{Deserialize, Serialize};

pub use error::{ConfigError, Origin};
pub use load::{CliOverrides, Effective};
pub use values::DeviceSelection;

/// The default configuration.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// All settings; `default.toml` documents each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub server: ServerConfig,
    pub devices: DevicesConfig,
    pub compile: CompileConfig,
    pub measure: MeasureConfig,
    pub tools: ToolsConfig,
    pub limits: LimitsConfig,
    pub tensors: TensorsConfig,
    pub storage: StorageConfig,
    pub log: LogConfig,
}

/// Settings of the table `[server]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    pub host: String,
    pub port: u16,
    pub api_keys: Vec<String>,
    pub admin_keys: Vec<String>,
    pub handle_keys: Vec<String>,
    pub function_keys: Vec<String>,
    pub pickle_keys: Vec<String>,
    pub functions_without_keys: bool,
    pub webhook_secret: String,
    pub webhook_hosts: Vec<String>,
    pub public_url: String,
    pub allowed_hosts: Vec<String>,
    pub body_limit_bytes: u64,
    pub upload_limit_bytes: u64,
    pub max_connections: usize,
    pub idle_timeout_s: f64,
    pub head_timeout_s: f64,
    pub body_timeout_s: f64,
    pub stall_timeout_s: f64,
    pub min_bytes_per_s: f64,
    pub shutdown_grace_s: f64,
}

impl ServerConfig {
    /// Returns whether the configuration contains several distinct keys. If so, no caller may use
    /// up a shared resource.
    pub fn has_several_keys(&self) -> bool {
        let lists = [
            &self.api_keys,
            &self.admin_keys,
            &self.handle_keys,
            &self.function_keys,
            &self.pickle_keys,
        ];
        let mut keys = lists.into_iter().flatten().filter(|key| !key.is_empty());
        let first = keys.next();
        keys.any(|key| Some(key) != first)
    }
}

/// Settings of the table `[devices]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevicesConfig {
    #[serde(rename = "use")]
    pub selection: String,
    pub emulator: String,
    pub hot_spare: bool,
    pub queue_capacity: usize,
    pub torch_places: usize,
    pub torch_spares: usize,
    pub torch_at_start: bool,
    pub function_idle_s: f64,
    pub device_metrics: bool,
}

/// Settings of the table `[compile]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompileConfig {
    pub parallelism: usize,
    pub timeout_s: f64,
    pub cache_max_bytes: u64,
    pub toolchain: String,
    pub python: String,
    pub triton_spares: usize,
}

/// Settings of the table `[measure]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureConfig {
    pub min_warmup_s: f64,
}

/// Settings of the table `[tools]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsConfig {
    pub path: String,
    pub timeout_s: f64,
    pub clock_control: String,
}

/// Settings of the table `[limits]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    pub max_tensor_bytes: u64,
    pub max_total_bytes: u64,
    pub max_output_bytes: u64,
    pub max_decoded_bytes: u64,
    pub max_sweep_points: usize,
    pub max_queued_per_key: u64,
    pub max_running_per_key: u64,
    pub max_matrix_bytes_per_key: u64,
    pub max_function_s: f64,
    pub max_function_memory_bytes: u64,
    pub max_function_result_bytes: u64,
}

/// Settings of the table `[tensors]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorsConfig {
    pub max_bytes_per_key: u64,
    pub max_count_per_key: u64,
    pub max_bytes: u64,
    pub ttl_s: f64,
    pub lease_s: f64,
    pub shared_dir: String,
}

/// Settings of the table `[storage]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageConfig {
    pub data_dir: String,
    pub database_url: String,
    pub durability: String,
    pub keep_days: f64,
    pub keep_jobs: u64,
    pub keep_bytes: u64,
    pub keep_points: u64,
    pub artifacts_max_bytes: u64,
}

/// Settings of the table `[log]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    pub level: String,
    /// Format of log messages: `text` or `json`.
    pub format: String,
}
