//! Table of settings, with one entry each. The main type is [`Setting`].

/// Type and range of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SettingKind {
    /// An integer in this range, including both ends.
    Integer(i64, i64),
    /// A finite number in this range, including both ends.
    Number(f64, f64),
    Boolean,
    Text,
    /// A host name or address: non-empty text without white space.
    Host,
    /// Address of a server: empty, or an `http` or `https` URL without login, query and fragment.
    WebAddress,
    /// A list of keys, each with 1 to 512 printable characters.
    Keys,
    /// Text that is never shown. It is empty, or has 16 to 512 printable characters.
    Secret,
    /// URL of a database, which may contain a password and is never shown. Empty means no database.
    DatabaseUrl,
    /// A list of hosts: `host` or `*.suffix`, each with an optional `:port` or `:*`.
    Hosts,
    /// Devices to use: `auto`, `emulator`, or ordinals.
    Devices,
    /// One of these words.
    Choice(&'static [&'static str]),
    LogFilter,
    /// A file or directory. A relative path in a file is relative to that file.
    Path,
}

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// `table.key`, as in `default.toml`.
    pub key: &'static str,
    /// Type and range.
    pub kind: SettingKind,
    /// Environment variable for the setting, if any.
    pub env: Option<&'static str>,
    /// Variable of the Remote GPU Execution Service with the same meaning. `env` takes precedence.
    pub service_env: Option<&'static str>,
}

const fn setting(key: &'static str, kind: SettingKind) -> Setting {
    Setting { key, kind, env: None, service_env: None }
}

const fn with_env(key: &'static str, kind: SettingKind, env: &'static str) -> Setting {
    Setting { key, kind, env: Some(env), service_env: None }
}

const fn with_service_env(
    key: &'static str,
    kind: SettingKind,
    env: &'static str,
    service_env: &'static str,
) -> Setting {
    Setting { key, kind, env: Some(env), service_env: Some(service_env) }
}

/// Largest value of a size setting, in bytes: 1 PiB.
const MAX_BYTES: i64 = 1 << 50;

/// All settings, in the order of `default.toml`.
pub const SETTINGS: &[Setting] = &[
    with_service_env("server.host", SettingKind::Host, "HOST", "GPU_SERVICE_HOST"),
    with_service_env("server.port", SettingKind::Integer(0, 65_535), "PORT", "GPU_SERVICE_PORT"),
    with_service_env(
        "server.api_keys",
        SettingKind::Keys,
        "WARPGAUGE_API_KEYS",
        "GPU_SERVICE_API_KEY",
    ),
    with_env("server.admin_keys", SettingKind::Keys, "WARPGAUGE_ADMIN_KEYS"),
    with_env("server.handle_keys", SettingKind::Keys, "WARPGAUGE_HANDLE_KEYS"),
    with_env("server.function_keys", SettingKind::Keys, "WARPGAUGE_FUNCTION_KEYS"),
    with_env("server.pickle_keys", SettingKind::Keys, "WARPGAUGE_PICKLE_KEYS"),
    setting("server.functions_without_keys", SettingKind::Boolean),
    with_env("server.webhook_secret", SettingKind::Secret, "WARPGAUGE_WEBHOOK_SECRET"),
    setting("server.webhook_hosts", SettingKind::Hosts),
    with_env("server.public_url", SettingKind::WebAddress, "WARPGAUGE_PUBLIC_URL"),
    with_env("server.allowed_hosts", SettingKind::Hosts, "WARPGAUGE_ALLOWED_HOSTS"),
    setting("server.body_limit_bytes", SettingKind::Integer(1_024, MAX_BYTES)),
    setting("server.upload_limit_bytes", SettingKind::Integer(1_024, MAX_BYTES)),
    setting("server.max_connections", SettingKind::Integer(8, 1_000_000)),
    setting("server.idle_timeout_s", SettingKind::Number(0.05, 86_400.0)),
    setting("server.head_timeout_s", SettingKind::Number(0.05, 3_600.0)),
    setting("server.body_timeout_s", SettingKind::Number(0.05, 86_400.0)),
    setting("server.stall_timeout_s", SettingKind::Number(0.05, 3_600.0)),
    setting("server.min_bytes_per_s", SettingKind::Number(1.0, 1e12)),
    setting("server.shutdown_grace_s", SettingKind::Number(0.0, 3_600.0)),
    with_env("devices.use", SettingKind::Devices, "GPU_DEVICE"),
    with_env("devices.emulator", SettingKind::Path, "WARPGAUGE_EMULATOR"),
    setting("devices.hot_spare", SettingKind::Boolean),
    setting("devices.queue_capacity", SettingKind::Integer(1, 1_000_000)),
    setting("devices.torch_places", SettingKind::Integer(0, 1_024)),
    setting("devices.torch_spares", SettingKind::Integer(0, 16)),
    setting("devices.torch_at_start", SettingKind::Boolean),
    setting("devices.function_idle_s", SettingKind::Number(0.0, 3_600.0)),
    with_env("devices.device_metrics", SettingKind::Boolean, "ENABLE_DEVICE_METRICS"),
    with_env("compile.parallelism", SettingKind::Integer(0, 1_024), "MAX_WORKERS"),
    setting("compile.timeout_s", SettingKind::Number(1.0, 3_600.0)),
    setting("compile.cache_max_bytes", SettingKind::Integer(0, MAX_BYTES)),
    with_env("compile.toolchain", SettingKind::Text, "WARPGAUGE_TOOLCHAIN"),
    with_env("compile.python", SettingKind::Text, "WARPGAUGE_PYTHON"),
    setting("compile.triton_spares", SettingKind::Integer(0, 64)),
    setting("measure.min_warmup_s", SettingKind::Number(0.0, 10.0)),
    with_env("tools.path", SettingKind::Text, "WARPGAUGE_TOOLS"),
    setting("tools.timeout_s", SettingKind::Number(1.0, 3_600.0)),
    setting("tools.clock_control", SettingKind::Choice(&["none", "base", "boost"])),
    setting("limits.max_tensor_bytes", SettingKind::Integer(1, MAX_BYTES)),
    setting("limits.max_total_bytes", SettingKind::Integer(1, MAX_BYTES)),
    setting("limits.max_output_bytes", SettingKind::Integer(0, MAX_BYTES)),
    setting("limits.max_decoded_bytes", SettingKind::Integer(1, MAX_BYTES)),
    setting("limits.max_sweep_points", SettingKind::Integer(1, 65_536)),
    setting("limits.max_queued_per_key", SettingKind::Integer(0, 100_000_000)),
    setting("limits.max_running_per_key", SettingKind::Integer(0, 1_000_000)),
    setting("limits.max_matrix_bytes_per_key", SettingKind::Integer(0, MAX_BYTES)),
    setting("limits.max_function_s", SettingKind::Number(1.0, 86_400.0)),
    setting("limits.max_function_memory_bytes", SettingKind::Integer(1 << 20, MAX_BYTES)),
    setting("limits.max_function_result_bytes", SettingKind::Integer(1 << 10, 4_000_000_000)),
    setting("tensors.max_bytes_per_key", SettingKind::Integer(0, MAX_BYTES)),
    setting("tensors.max_count_per_key", SettingKind::Integer(0, 1_000_000)),
    setting("tensors.max_bytes", SettingKind::Integer(0, MAX_BYTES)),
    setting("tensors.ttl_s", SettingKind::Number(0.0, 31_536_000.0)),
    setting("tensors.lease_s", SettingKind::Number(1.0, 86_400.0)),
    setting("tensors.shared_dir", SettingKind::Path),
    with_env("storage.data_dir", SettingKind::Path, "WARPGAUGE_DATA_DIR"),
    with_env("storage.database_url", SettingKind::DatabaseUrl, "WARPGAUGE_DATABASE_URL"),
    setting("storage.durability", SettingKind::Choice(&["process", "power"])),
    setting("storage.keep_days", SettingKind::Number(0.0, 36_500.0)),
    setting("storage.keep_jobs", SettingKind::Integer(0, 1_000_000_000)),
    setting("storage.keep_bytes", SettingKind::Integer(0, MAX_BYTES)),
    setting("storage.keep_points", SettingKind::Integer(0, 1_000_000_000)),
    setting("storage.artifacts_max_bytes", SettingKind::Integer(0, MAX_BYTES)),
    with_env("log.level", SettingKind::LogFilter, "LOG_LEVEL"),
    setting("log.format", SettingKind::Choice(&["text", "json"])),
];

/// Returns the setting with that key.
pub fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// Returns the tables of `default.toml`, in order.
pub(super) fn tables() -> Vec<&'static str> {
    let mut tables: Vec<&str> =
        SETTINGS.iter().filter_map(|s| s.key.split_once('.')).map(|(table, _)| table).collect();
    tables.dedup();
    tables
}
