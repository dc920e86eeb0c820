//! The environment of children: the variables that CUDA and the loader need, and no others. The
//! main constant is [`INHERITED`].
//!
//! The server's environment contains keys, its database address and other private data. A child
//! that runs submitted machine code or a third-party tool receives only the variables in
//! [`INHERITED`] and those that its caller adds.

use std::ffi::OsString;

/// The variables that children inherit if they are set. docs/security.md contains the same table.
pub const INHERITED: &[&str] = &[
    // Locations of programs, libraries and temporary files. The driver caches compiled code below
    // HOME.
    "PATH",
    "LD_LIBRARY_PATH",
    "HOME",
    "TMPDIR",
    // Choice of devices.
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_MIG_CONFIG_DEVICES",
    "NVIDIA_MIG_MONITOR_DEVICES",
    // Multi-process service.
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_CLIENT_PRIORITY",
    // Loading and compilation of code by the driver.
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_PATH",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_MODULE_LOADING",
    "CUDA_MODULE_DATA_LOADING",
    "CUDA_BINARY_LOADER_THREAD_COUNT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_JIT",
    "CUDA_DISABLE_JIT",
    // Execution by the driver.
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_MAX_COPY_CONNECTIONS",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION",
    "CUDA_MANAGED_FORCE_DEVICE_ALLOC",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "CUDA_GRAPHS_USE_NODE_PRIORITY",
    "CUDA_AUTO_BOOST",
    "CUDA_DISABLE_PERF_BOOST",
    // Emulated device.
    "WARPGAUGE_EMULATOR",
    "WARPGAUGE_EMULATOR_CC",
    "WARPGAUGE_EMULATOR_DEVICES",
    "WARPGAUGE_EMULATOR_MEMORY_MB",
    "WARPGAUGE_EMULATOR_ORDER",
    "WARPGAUGE_EMULATOR_TIMEOUT_MS",
    // Backtraces of children that crash.
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
];

/// The variables of warpgauge that contain secrets. The user's programs that need most of the
/// environment (git, pip) run without these variables.
pub const SECRET: [&str; 8] = [
    "WARPGAUGE_API_KEY",
    "WARPGAUGE_API_KEYS",
    "WARPGAUGE_FUNCTION_KEYS",
    "WARPGAUGE_PICKLE_KEYS",
    "WARPGAUGE_ADMIN_KEYS",
    "WARPGAUGE_HANDLE_KEYS",
    "WARPGAUGE_WEBHOOK_SECRET",
    "WARPGAUGE_DATABASE_URL",
];

/// The search path for programs if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the whole environment of a child: the inherited variables, and the C locale, which
/// formats numbers without separators.
pub fn of_child() -> impl Iterator<Item = (&'static str, OsString)> {
    chosen(|name| std::env::var_os(name))
}

fn chosen(
    get: impl Fn(&str) -> Option<OsString>,
) -> impl Iterator<Item = (&'static str, OsString)> {
    let fixed = [("PATH", DEFAULT_PATH), ("LC_ALL", "C"), ("LANG", "C")];
    let fixed = fixed.map(|(name, value)| (name, OsString::from(value)));
    let inherited = INHERITED.iter().filter_map(move |name| Some((*name, get(name)?)));
    fixed.into_iter().chain(inherited)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_not_on_the_list_is_not_handed_on() {
        let given =
            ["PATH", "CUDA_VISIBLE_DEVICES", "LC_ALL", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD"];
        let given: Vec<&str> = given.into_iter().chain(SECRET).collect();
        let get = |name: &str| given.contains(&name).then(|| OsString::from("given"));
        let child: BTreeMap<&str, OsString> = chosen(get).collect();
        let expected =
            [("CUDA_VISIBLE_DEVICES", "given"), ("LANG", "C"), ("LC_ALL", "C"), ("PATH", "given")];
        assert_eq!(child, expected.map(|(name, value)| (name, value.into())).into());
        let bare: BTreeMap<&str, OsString> = chosen(|_| None).collect();
        assert_eq!(bare["PATH"], OsString::from(DEFAULT_PATH));
    }

    /// Every secret setting is in the list of secrets and in no list of inherited variables.
    #[test]
    fn secrets_are_known() {
        use warpgauge_config::settings::{SETTINGS, SettingKind};
        for setting in SETTINGS {
            let Some(name) = setting.env else { continue };
            let secret = matches!(
                setting.kind,
                SettingKind::Keys | SettingKind::Secret | SettingKind::DatabaseUrl
            );
            assert_eq!(SECRET.contains(&name), secret, "{name}");
        }
        assert!(SECRET.iter().all(|name| !INHERITED.contains(name)));
    }

    #[test]
    fn the_table_of_the_documentation_is_this_one() {
        let page = include_str!("../../../../docs/security.md");
        let (_, section) = page.split_once("\n## Environment of children\n").expect("the section");
        let (section, _) = section.split_once("\n#").unwrap_or((section, ""));
        let shown: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let shown = shown.join(" ");
        let shown: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert_eq!(shown, INHERITED);
    }
}
