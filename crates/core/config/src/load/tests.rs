use super::*;

/// Loads a file with the given text and the given variables (and a HOME), without flags.
fn load(file: Option<&str>, vars: &[(&str, &str)]) -> Result<Effective, ConfigError> {
    load_with(file, vars, &CliOverrides::default())
}

fn load_with(
    file: Option<&str>,
    vars: &[(&str, &str)],
    overrides: &CliOverrides,
) -> Result<Effective, ConfigError> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("warpgauge.toml");
    if let Some(text) = file {
        std::fs::write(&path, text).expect("writing the file");
    }
    let env = |name: &str| {
        vars.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
            .or_else(|| (name == "HOME").then(|| "/home/someone".to_owned()))
    };
    Config::load_with_origins(file.map(|_| path.as_path()), &env, overrides)
}

/// Returns the message of a refused configuration, without the temporary directory.
fn refusal(file: &str) -> String {
    let message = load(Some(file), &[]).expect_err("must be refused").to_string();
    match message.split_once("warpgauge.toml") {
        Some((_, rest)) => format!("warpgauge.toml{rest}"),
        None => message,
    }
}

#[test]
fn defaults_are_complete_and_in_range() {
    let effective = load(None, &[]).expect("the defaults are valid");
    assert_eq!(effective.config.server.port, 8000);
    assert_eq!(effective.config.storage.data_dir, "/home/someone/.local/share/warpgauge");
    assert_eq!(effective.origins.len(), SETTINGS.len(), "default.toml sets every setting");
    assert!(effective.origins.values().all(|origin| *origin == Origin::Default));
    // All fields of `Config` are in the table of settings.
    let value = toml::Value::try_from(&effective.config).expect("serialises");
    let fields: usize = value
        .as_table()
        .expect("a table")
        .values()
        .map(|t| t.as_table().map_or(0, |t| t.len()))
        .sum();
    assert_eq!(fields, SETTINGS.len());
}

#[test]
fn default_toml_documents_every_environment_variable() {
    for setting in SETTINGS {
        for name in [setting.env, setting.service_env].into_iter().flatten() {
            assert!(DEFAULT_TOML.contains(name), "{name} is not in default.toml");
        }
    }
}

#[test]
fn every_environment_variable_is_honoured() {
    type Read = fn(&Config) -> String;
    let cases: &[(&str, &str, Read, &str)] = &[
        ("HOST", "0.0.0.0", |c| c.server.host.clone(), "0.0.0.0"),
        ("PORT", "9001", |c| c.server.port.to_string(), "9001"),
        ("WARPGAUGE_API_KEYS", "a,b", |c| c.server.api_keys.join("+"), "a+b"),
        ("WARPGAUGE_ADMIN_KEYS", "a,b", |c| c.server.admin_keys.join("+"), "a+b"),
        ("WARPGAUGE_HANDLE_KEYS", "a,b", |c| c.server.handle_keys.join("+"), "a+b"),
        ("WARPGAUGE_FUNCTION_KEYS", "a,b", |c| c.server.function_keys.join("+"), "a+b"),
        ("WARPGAUGE_PICKLE_KEYS", "a", |c| c.server.pickle_keys.join("+"), "a"),
        ("WARPGAUGE_ALLOWED_HOSTS", "a,*.b:1", |c| c.server.allowed_hosts.join("+"), "a+*.b:1"),
        ("WARPGAUGE_PUBLIC_URL", "https://h/x", |c| c.server.public_url.clone(), "https://h/x"),
        (
            "WARPGAUGE_WEBHOOK_SECRET",
            "0123456789abcdef",
            |c| c.server.webhook_secret.clone(),
            "0123456789abcdef",
        ),
        ("GPU_DEVICE", "1,0", |c| format!("{:?}", c.device_selection()), "Ordinals([1, 0])"),
        (
            "WARPGAUGE_EMULATOR",
            "/opt/libcuda.so",
            |c| c.devices.emulator.clone(),
            "/opt/libcuda.so",
        ),
        ("ENABLE_DEVICE_METRICS", "true", |c| c.devices.device_metrics.to_string(), "true"),
        ("MAX_WORKERS", "3", |c| c.compile.parallelism.to_string(), "3"),
        ("WARPGAUGE_TOOLCHAIN", "/a:/b", |c| c.compile.toolchain.clone(), "/a:/b"),
        ("WARPGAUGE_PYTHON", "/a/python3", |c| c.compile.python.clone(), "/a/python3"),
        ("WARPGAUGE_TOOLS", "/a:/b", |c| c.tools.path.clone(), "/a:/b"),
        ("WARPGAUGE_DATA_DIR", "/data", |c| c.storage.data_dir.clone(), "/data"),
        (
            "WARPGAUGE_DATABASE_URL",
            "postgres://user@host/name",
            |c| c.storage.database_url.clone(),
            "postgres://user@host/name",
        ),
        ("LOG_LEVEL", "debug", |c| c.log.level.clone(), "debug"),
    ];
    for (name, text, read, expected) in cases {
        let effective = load(None, &[(name, text)]).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(read(&effective.config), *expected, "{name}");
        let setting = SETTINGS.iter().find(|s| s.env == Some(name)).expect("in the table");
        let from_env: Vec<_> =
            effective.origins.iter().filter(|(_, o)| **o != Origin::Default).collect();
        let (name, expected_key) = (setting.env.expect("has one"), setting.key);
        assert_eq!(from_env, [(&expected_key, &Origin::Environment(name))]);
    }
    let tested = cases.len();
    let known = SETTINGS.iter().filter(|setting| setting.env.is_some()).count();
    assert_eq!(tested, known, "a case for every variable");
}

#[test]
fn variables_of_the_remote_gpu_execution_service_are_read() {
    let vars = [
        ("GPU_SERVICE_HOST", "0.0.0.0"),
        ("GPU_SERVICE_PORT", "5000"),
        ("GPU_SERVICE_API_KEY", "one,key"),
    ];
    let effective = load(None, &vars).expect("valid");
    let server = &effective.config.server;
    assert_eq!((server.host.as_str(), server.port), ("0.0.0.0", 5000));
    assert_eq!(server.api_keys, ["one,key"], "the service has one key");
    let origin = &effective.origins["server.api_keys"];
    assert_eq!(*origin, Origin::Environment("GPU_SERVICE_API_KEY"));
    assert_eq!(effective.remarks, Vec::<String>::new());
    let known = SETTINGS.iter().filter(|setting| setting.service_env.is_some()).count();
    assert_eq!(vars.len(), known, "a case for every variable");

    let error = load(None, &[("GPU_SERVICE_API_KEY", "with blank")]).expect_err("no key");
    let text = error.to_string();
    assert!(text.contains("GPU_SERVICE_API_KEY") && !text.contains("with blank"), "{text}");
}

#[test]
fn a_variable_of_the_service_without_effect_leaves_a_remark() {
    let vars = [
        ("PORT", "8000"),
        ("GPU_SERVICE_PORT", "5000"),
        ("GPU_SERVICE_REQUIRE_AUTH", "False"),
        ("GPU_SERVICE_DEBUG", "True"),
    ];
    let effective = load(None, &vars).expect("valid");
    assert_eq!(effective.config.server.port, 8000);
    let expected = ["GPU_SERVICE_PORT", "GPU_SERVICE_REQUIRE_AUTH", "GPU_SERVICE_DEBUG"];
    assert_eq!(effective.remarks.len(), expected.len(), "{:?}", effective.remarks);
    for (remark, name) in effective.remarks.iter().zip(expected) {
        assert!(remark.starts_with(name), "{remark}");
    }
}

#[test]
fn each_layer_overrides_the_one_before() {
    let file = "[server]\nport = 1\nhost = \"file\"\n[log]\nlevel = \"warn\"\n";
    let vars = [("PORT", "2"), ("LOG_LEVEL", "error")];
    let flags = CliOverrides { port: Some("3".to_owned()), ..CliOverrides::default() };
    let effective = load_with(Some(file), &vars, &flags).expect("valid");
    assert_eq!(effective.config.server.port, 3);
    assert_eq!(effective.config.log.level, "error");
    assert_eq!(effective.config.server.host, "file");
    assert_eq!(effective.config.server.shutdown_grace_s, 30.0, "a partial file keeps the rest");
    assert_eq!(effective.origins["server.port"], Origin::Flag("--port"));
    assert_eq!(effective.origins["log.level"], Origin::Environment("LOG_LEVEL"));
    assert!(matches!(effective.origins["server.host"], Origin::File { line: 3, .. }));
}

#[test]
fn every_flag_is_honoured() {
    let flags = CliOverrides {
        host: Some("h".to_owned()),
        port: Some("7".to_owned()),
        device: Some("emulator".to_owned()),
        log_level: Some("trace".to_owned()),
    };
    let config = load_with(None, &[], &flags).expect("valid").config;
    assert_eq!((config.server.host.as_str(), config.server.port), ("h", 7));
    assert_eq!(config.device_selection(), DeviceSelection::Emulator);
    assert_eq!(config.log.level, "trace");
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let effective = load(None, &[("PORT", ""), ("HOST", "")]).expect("valid");
    assert_eq!(effective.config.server.port, 8000);
    assert_eq!(effective.origins["server.port"], Origin::Default);
}

#[test]
fn wrong_variables_and_flags_name_themselves() {
    let message = load(None, &[("PORT", "80 80")]).expect_err("refused").to_string();
    assert_eq!(
        message,
        "environment variable PORT: `server.port` must be a whole number from 0 to 65535; got \"80 80\""
    );
    let flags = CliOverrides { device: Some("gpu".to_owned()), ..CliOverrides::default() };
    let message = load_with(None, &[], &flags).expect_err("refused").to_string();
    assert!(message.starts_with("flag --device: `devices.use` must be `auto`"), "{message}");
}

#[test]
fn wrong_files_say_where_and_what() {
    let cases = [
        (
            "[server]\nport = 70000\n",
            "warpgauge.toml:2: `server.port` must be a whole number from 0 to 65535; got 70000",
        ),
        (
            "[server]\n\nport = \"x\"\n",
            "warpgauge.toml:3: `server.port` must be a whole number from 0 to 65535; got \"x\"",
        ),
        (
            "[measure]\nmin_warmup_s = -1\n",
            "warpgauge.toml:2: `measure.min_warmup_s` must be a number from 0 to 10; got -1",
        ),
        (
            "[devices]\nhot_spare = 1\n",
            "warpgauge.toml:2: `devices.hot_spare` must be true or false; got 1",
        ),
        (
            "[storage]\ndata_dir = \"~/x\"\n",
            "warpgauge.toml:2: `storage.data_dir` must be a path; only shells expand `~`, so write the whole path; got \"~/x\"",
        ),
        (
            "server = 3\n",
            "warpgauge.toml:1: `server` must be a table: write `[server]` and its settings below; got integer",
        ),
        (
            "[log]\nlevl = \"info\"\n",
            "warpgauge.toml:2: unknown setting `log.levl` (did you mean `log.level`?); known: log.level, log.format",
        ),
        (
            "[log]\nport = 1\n",
            "warpgauge.toml:2: unknown setting `log.port` (did you mean `server.port`?); known: log.level, log.format",
        ),
        (
            "[sever]\n",
            "warpgauge.toml:1: unknown setting `sever` (did you mean `server`?); known: server, devices, compile, measure, tools, limits, tensors, storage, log",
        ),
    ];
    for (file, expected) in cases {
        assert_eq!(refusal(file), expected);
    }
    assert!(refusal("[server]\nport = \n").starts_with("warpgauge.toml:2: not valid TOML: "));
}

#[test]
fn api_keys_never_reach_a_message() {
    let message = refusal("[server]\napi_keys = [\"top secret\"]\n");
    assert!(!message.contains("secret"), "{message}");
    let message =
        load(None, &[("WARPGAUGE_API_KEYS", "top secret")]).expect_err("refused").to_string();
    assert!(!message.contains("top secret"), "{message}");
}

#[test]
fn a_file_that_is_not_there_or_too_large_is_an_error() {
    let env = |_: &str| Some("/tmp".to_owned());
    let missing = Config::load(Some(Path::new("/no/such.toml")), &env, &CliOverrides::default());
    assert!(matches!(missing, Err(ConfigError::Read { .. })));
    let large = "#".repeat(MAX_FILE_BYTES as usize + 1);
    assert!(matches!(load(Some(&large), &[]), Err(ConfigError::TooLarge { .. })));
}

#[test]
fn the_data_directory_follows_xdg_and_is_absolute() {
    let dir = |vars: &[(&str, &str)]| load(None, vars).expect("valid").config.storage.data_dir;
    assert_eq!(dir(&[("XDG_DATA_HOME", "/xdg")]), "/xdg/warpgauge");
    assert_eq!(
        dir(&[("XDG_DATA_HOME", "relative")]),
        "/home/someone/.local/share/warpgauge",
        "the specification says to ignore a relative one"
    );
    assert!(Path::new(&dir(&[("WARPGAUGE_DATA_DIR", "here")])).is_absolute());
    let none = Config::load(None, &|_| None, &CliOverrides::default());
    assert!(matches!(none, Err(ConfigError::NoDataDir)));
}

#[test]
fn paths_in_a_file_are_relative_to_the_file() {
    let effective = load(Some("[storage]\ndata_dir = \"data\"\n"), &[]).expect("valid");
    let Origin::File { path, .. } = &effective.origins["storage.data_dir"] else {
        panic!("comes from the file");
    };
    assert_eq!(effective.config.data_dir(), path.parent().expect("has one").join("data"));
}

/// `DATABASE_URL` belongs to other programs of the machine, so its database is not used.
#[test]
fn the_database_of_another_program_is_left_alone() {
    let theirs = ("DATABASE_URL", "postgres://app:sesame@host/app");
    let given = load(None, &[theirs]).unwrap();
    assert_eq!(given.config.storage.database_url, "");
    let [remark] = &given.remarks[..] else { panic!("{:?}", given.remarks) };
    assert!(remark.contains("WARPGAUGE_DATABASE_URL") && !remark.contains("sesame"), "{remark}");
    let ours = ("WARPGAUGE_DATABASE_URL", "postgres://wg@host/wg");
    let given = load(None, &[theirs, ours]).unwrap();
    assert_eq!(given.config.storage.database_url, ours.1);
    assert!(given.remarks.is_empty());
    // A URL with another scheme needs no remark.
    for other in ["mysql://host/app", "", "sqlite:app.db"] {
        assert!(load(None, &[("DATABASE_URL", other)]).unwrap().remarks.is_empty(), "{other}");
    }
}
