//! Trusted certificates, and explanations of TLS errors. The main type is [`Trust`].

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, RootCertStore};
use rustls_native_certs::{ErrorKind, load_certs_from_paths};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Maximum size of a certificate file, bytes. The files of operating systems have about 256 kB.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Environment variables of OpenSSL: a certificate file, and directories.
const CERT_FILE: &str = "SSL_CERT_FILE";
const CERT_DIR: &str = "SSL_CERT_DIR";

/// A certificate file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} ({origin}) {problem}", path.display())]
pub struct CertificateFileError {
    path: PathBuf,
    /// The option or the environment variable that contains the name of the file.
    origin: &'static str,
    /// Description of the problem.
    problem: String,
}

/// Trusted certificate authorities. If the caller names a file, only its authorities are trusted.
/// Otherwise those of `SSL_CERT_FILE` and `SSL_CERT_DIR` are trusted, otherwise those of the
/// system, and otherwise Mozilla's, as of this build.
pub(crate) struct Trust {
    named: Option<PathBuf>,
    /// Certificates. They are read once, for the first connection.
    read: Mutex<Option<RootCerts>>,
}

impl Trust {
    pub(crate) fn new(named: Option<PathBuf>) -> Self {
        Self { named, read: Mutex::default() }
    }

    pub(crate) fn config(&self) -> Result<TlsConfig, CertificateFileError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let roots = match &*read {
            Some(roots) => roots.clone(),
            None => {
                let env = |name: &str| std::env::var_os(name).map(PathBuf::from);
                read.insert(roots(self.named.as_deref(), &env)?).clone()
            }
        };
        Ok(TlsConfig::builder().root_certs(roots).build())
    }
}

fn roots(
    named: Option<&Path>,
    env: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<RootCerts, CertificateFileError> {
    if let Some(path) = named {
        return read(path, "--ca-cert or WARPGAUGE_CA_CERT").map(RootCerts::from);
    }
    let given = |name| env(name).filter(|path| !path.as_os_str().is_empty());
    let (file, directories) = (given(CERT_FILE), given(CERT_DIR));
    let mut found = Vec::new();
    if let Some(path) = &file {
        found.extend(read(path, CERT_FILE)?);
    }
    for path in directories.iter().flat_map(std::env::split_paths) {
        found.extend(read(&path, CERT_DIR)?);
    }
    if file.is_none() && directories.is_none() {
        // `load_native_certs` would treat the value of an empty variable as a file name.
        let system = openssl_probe::probe();
        let directory = system.cert_dir.first().map(PathBuf::as_path);
        found = usable(load_certs_from_paths(system.cert_file.as_deref(), directory).certs);
    }
    Ok(if found.is_empty() { RootCerts::WebPki } else { found.into() })
}

/// Reads the certificates in a file, or in all files of a directory. Fails if there are none.
fn read(
    path: &Path,
    origin: &'static str,
) -> Result<Vec<Certificate<'static>>, CertificateFileError> {
    let wrong = |problem: String| CertificateFileError { path: path.to_owned(), origin, problem };
    let unreadable = |error: &std::io::Error| wrong(format!("cannot be read: {error}"));
    let size = path.metadata().map_err(|error| unreadable(&error))?.len();
    if size > MAX_FILE_BYTES {
        return Err(wrong(format!(
            "has more than {MAX_FILE_BYTES} bytes; use a file that contains only the certificate of the server's authority"
        )));
    }
    let read = match origin {
        CERT_DIR => load_certs_from_paths(None, Some(path)),
        _ => load_certs_from_paths(Some(path), None),
    };
    let found = usable(read.certs);
    if !found.is_empty() {
        return Ok(found);
    }
    let failed = read.errors.iter().find_map(|error| match &error.kind {
        ErrorKind::Io { inner, .. } => Some(unreadable(inner)),
        _ => None,
    });
    let expected = "contains no certificate; expected PEM, `-----BEGIN CERTIFICATE-----`";
    Err(failed.unwrap_or_else(|| wrong(expected.to_owned())))
}

/// Returns the certificates that TLS can use.
fn usable(found: Vec<CertificateDer<'static>>) -> Vec<Certificate<'static>> {
    let usable = |der: &CertificateDer<'static>| RootCertStore::empty().add(der.clone()).is_ok();
    found
        .iter()
        .filter(|der| usable(der))
        .map(|der| Certificate::from_der(der).to_owned())
        .collect()
}

/// Returns the server-side problem of a TLS connection, with a remedy. `None` means that the error
/// does not come from TLS.
pub(crate) fn explain(error: &ureq::Error) -> Option<String> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => of_io(error)?,
        ureq::Error::Tls(what) => return Some((*what).to_owned()),
        _ => return None,
    };
    Some(match error {
        rustls::Error::InvalidCertificate(problem) => certificate(problem),
        rustls::Error::InvalidMessage(_) => {
            "it does not use TLS; is it an http:// server, or another kind of proxy?".to_owned()
        }
        other => format!("the encrypted connection failed: {other}"),
    })
}

/// Returns the TLS error that an I/O error contains.
fn of_io(error: &std::io::Error) -> Option<&rustls::Error> {
    let mut cause = error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static));
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        cause = error.source();
    }
    None
}

fn certificate(problem: &CertificateError) -> String {
    let advice = match problem {
        CertificateError::UnknownIssuer => {
            "its certificate is from an authority that is not trusted on this machine; if it is your own, pass \
             that authority's certificate with --ca-cert FILE or WARPGAUGE_CA_CERT"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; renew it on the server, or correct this machine's clock"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; is this machine's clock correct?"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name; use the name in the certificate, or create one for \
             this name (as a subjectAltName)"
        }
        CertificateError::Revoked => "its certificate was revoked",
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority, which is not accepted for a server; create one \
             for the server (basicConstraints CA:FALSE)"
        }
        _ => "its certificate is not accepted",
    };
    format!("{advice} ({problem})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_serve_are_named() {
        let place = tempfile::tempdir().unwrap();
        let (none, empty) = (place.path().join("none.pem"), place.path().join("empty.pem"));
        std::fs::write(
            &empty,
            "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
        )
        .unwrap();
        let unset = |_: &str| None;
        let error = roots(Some(&none), &unset).unwrap_err().to_string();
        assert!(
            error.contains("none.pem (--ca-cert") && error.contains("cannot be read"),
            "{error}"
        );
        let error = roots(Some(&empty), &unset).unwrap_err().to_string();
        assert!(error.contains("empty.pem") && error.contains("BEGIN CERTIFICATE"), "{error}");
        for (name, path) in [("SSL_CERT_FILE", &empty), ("SSL_CERT_DIR", &place.path().to_owned())]
        {
            let error = roots(None, &|asked| (asked == name).then(|| path.clone())).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        // An empty variable counts as not set.
        assert!(roots(None, &|_| Some(PathBuf::new())).is_ok());
    }
}
