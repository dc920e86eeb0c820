//! Commands at a server behind TLS: a proxy with generated certificates, in front of a real server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::contracts::increment;
use crate::server::Server;
use crate::support::{outcome, warpgauge};

const KEY: (&str, &str) = ("WARPGAUGE_API_KEYS", "sesame");

/// What the certificate of a proxy is like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// As it should be.
    Right,
    /// For another name.
    AnotherName,
    /// From 2020 to 2021.
    Expired,
    /// One of an authority.
    Authority,
}

/// A proxy that takes TLS and passes on what is in it, for as long as it lives.
struct Proxy {
    /// Where it listens.
    port: u16,
    /// The authority that its certificate is of, PEM.
    authority: PathBuf,
    /// Connections that came to be encrypted.
    agreed: Arc<AtomicUsize>,
    files: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Proxy {
    /// Starts one before an address.
    fn before(target: &str, shape: Shape) -> Self {
        let files = tempfile::tempdir().unwrap();
        let authority = files.path().join("authority.pem");
        let (config, pem) = certified(shape);
        std::fs::write(&authority, pem).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let target: SocketAddr = target.parse().unwrap();
        let agreed = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&agreed);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let Ok(mut outer) = acceptor.accept(stream).await else { return };
                    counted.fetch_add(1, Ordering::Relaxed);
                    let Ok(mut inner) = TcpStream::connect(target).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
                });
            }
        });
        Self { port, authority, agreed, files, _runtime: runtime }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Runs a command with `{url}` and `{ca}` filled in; exit code, output, errors.
    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
        let ca = self.authority.to_str().unwrap();
        let filled: Vec<String> = arguments
            .iter()
            .map(|argument| argument.replace("{url}", &self.url()).replace("{ca}", ca))
            .collect();
        let filled: Vec<&str> = filled.iter().map(String::as_str).collect();
        let mut command = warpgauge(self.files.path(), &filled);
        command.env("WARPGAUGE_API_KEY", "sesame");
        command.envs(environment.iter().map(|(name, value)| (name, value.replace("{ca}", ca))));
        outcome(command.output().unwrap())
    }

    /// As [`Proxy::run`], for what must work.
    fn runs(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let (code, out, error) = self.run(arguments, environment);
        assert_eq!(code, 0, "{arguments:?}: {error}{out}");
        out
    }

    /// A file beside its certificates.
    fn file(&self, name: &str, content: &Value) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path
    }
}

/// A server's side of TLS, and the authority to trust for it.
fn certified(shape: Shape) -> (ServerConfig, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let names = match shape {
        Shape::AnotherName => vec!["gpu.example".to_owned()],
        _ => vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
    };
    let mut own = CertificateParams::new(names).unwrap();
    if shape == Shape::Expired {
        (own.not_before, own.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    }
    if shape == Shape::Authority {
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = own.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (config, pem)
}

fn address(server: &Server) -> &str {
    server.url.strip_prefix("http://").unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn every_command_works_over_tls() {
    let server = Server::start_with(&[], &[KEY]);
    let proxy = Proxy::before(address(&server), Shape::Right);
    let contract = proxy.file("contract.json", &increment());
    let evaluated = proxy
        .runs(&["eval", text(&contract), "--json", "--server", "{url}", "--ca-cert", "{ca}"], &[]);
    let report: Value = serde_json::from_str(&evaluated).unwrap();
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{evaluated}");
    let id = report["job_id"].as_str().unwrap();

    // By its address, and with the authority named by the environment.
    let by_address = proxy.url().replace("localhost", "127.0.0.1");
    let ours = [("WARPGAUGE_CA_CERT", "{ca}")];
    let systems = [("SSL_CERT_FILE", "{ca}"), ("WARPGAUGE_CA_CERT", "")];
    let listed = proxy.runs(&["jobs", "list", "--server", &by_address], &ours);
    assert!(listed.contains(id), "{listed}");
    let shown = proxy.runs(&["jobs", "show", id, "--json", "--server", "{url}/"], &systems);
    assert!(shown.contains("\"completed\""), "{shown}");

    // Streams of events.
    let events = proxy.runs(&["jobs", "events", id, "--server", "{url}"], &ours);
    assert!(events.contains("completed"), "{events}");
    // A list of directories, with other files in them than certificates.
    let directories = format!("{0}:{0}", text(proxy.files.path()));
    let listed_twice = [("SSL_CERT_DIR", directories.as_str()), ("WARPGAUGE_CA_CERT", "")];
    let waited = proxy.runs(&["jobs", "wait", id, "--server", "{url}"], &listed_twice);
    assert!(waited.contains("CORRECT"), "{waited}");
    let mut sweep = increment();
    sweep["axes"] = json!({"n": [64, 128]});
    sweep["kernel"]["io"]["args"][2]["value"] = json!("$n");
    sweep.as_object_mut().unwrap().remove("expected");
    let sweep = proxy.file("sweep.json", &sweep);
    let swept = proxy.runs(&["sweep", text(&sweep), "--csv", "--server", "{url}"], &ours);
    assert_eq!(swept.lines().count(), 3, "{swept}");

    for command in [&["history"][..], &["baselines", "list"]] {
        proxy.runs(&[command, &["--server", "{url}"]].concat(), &ours);
    }
    let profiled = proxy.runs(&["profile", text(&contract), "--server", "{url}", "--json"], &ours);
    assert!(profiled.contains("profile"), "{profiled}");
    assert!(proxy.agreed.load(Ordering::Relaxed) >= 8);
}

#[test]
fn a_server_that_does_not_show_who_it_is_gets_nothing() {
    let server = Server::start_with(&[], &[KEY]);
    let list = ["jobs", "list", "--server", "{url}"];
    let trusting = [&list[..], &["--ca-cert", "{ca}"]].concat();
    let refused = |shape: Shape, arguments: &[&str], word: &str| {
        let proxy = Proxy::before(address(&server), shape);
        let (code, out, error) = proxy.run(arguments, &[]);
        assert_eq!((code, out.as_str()), (1, ""), "{error}");
        assert!(error.contains(word) && error.contains(&proxy.url()), "{error}");
        assert_eq!(proxy.agreed.load(Ordering::Relaxed), 0, "{word}");
    };
    refused(Shape::Right, &list, "--ca-cert");
    refused(Shape::AnotherName, &trusting, "another name");
    refused(Shape::Expired, &trusting, "expired");
    refused(Shape::Authority, &trusting, "authority");

    // Nor one that speaks no TLS: it never sees a key.
    let plain = server.url.replace("http://", "https://");
    let proxy = Proxy::before(address(&server), Shape::Right);
    let (code, _, error) = proxy.run(&["jobs", "list", "--server", &plain], &[]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("does not use TLS"), "{error}");
}

#[test]
fn wrong_usage_is_told_before_anything_is_sent() {
    let proxy = Proxy::before("127.0.0.1:9", Shape::Right);
    let login = proxy.url().replace("https://", "https://me:hunter2@");
    let (code, _, error) = proxy.run(&["jobs", "list", "--server", &login], &[]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("--api-key") && !error.contains("hunter2"), "{error}");
    let missing = ["jobs", "list", "--server", "{url}", "--ca-cert", "/nowhere.pem"];
    let (code, _, error) = proxy.run(&missing, &[]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("/nowhere.pem (--ca-cert"), "{error}");
    assert_eq!(proxy.agreed.load(Ordering::Relaxed), 0);
}

#[test]
fn a_key_that_others_can_read_on_the_way_is_warned_of() {
    let proxy = Proxy::before("127.0.0.1:9", Shape::Right);
    // Nothing leaves this machine: the way to that name leads through a port that nobody listens on.
    let closed = [("http_proxy", "http://127.0.0.1:1"), ("https_proxy", "http://127.0.0.1:1")];
    let warned = |url: &str| {
        let (code, _, error) = proxy.run(&["jobs", "list", "--server", url], &closed);
        assert_eq!(code, 1, "{error}");
        error.contains("unencrypted")
    };
    assert!(warned("http://gpu.example:8000"));
    assert!(!warned("https://gpu.example:8000"));
    assert!(!warned("http://127.0.0.1:1"));
}

/// Whoever sends a caller elsewhere gets its key there neither over TLS nor without it.
#[test]
fn redirects_are_not_followed_with_a_key() {
    use std::io::Write;
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let there = format!("http://{}/jobs", elsewhere.local_addr().unwrap());
    let stub = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::before(&stub.local_addr().unwrap().to_string(), Shape::Right);
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {there}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = stub.accept().unwrap();
        crate::support::next_request(&stream);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let arguments = ["jobs", "list", "--server", "{url}", "--ca-cert", "{ca}"];
    let (code, _, error) = proxy.run(&arguments, &[]);
    answering.join().unwrap();
    assert_ne!(code, 0);
    assert!(error.contains(&there), "{error}");
    assert!(elsewhere.accept().is_err(), "nobody came");
}
