//! Rejects requests that a browser sends for a web page of another site.
//!
//! A server without keys trusts every client that can reach it. Any page that a browser on this
//! machine shows can send requests to the server. It may send them directly, which `Origin` and
//! `Sec-Fetch-Site` show. Or it may use a name that resolves to this machine, which `Host` shows.
//! So the server accepts a request only if it is addressed to a name of this server, and not sent
//! by a page of another site. If keys are required, pages of other sites have none, and the rule
//! applies only if the operator lists names, or if the browser adds a key by itself.

use std::net::{IpAddr, Ipv6Addr};

use poem::http::{HeaderMap, Method, StatusCode, Version, header};
use poem::{Addr, Endpoint, Request, Response};

use super::auth::{Keys, has_browser_key};
use crate::error::ApiError;
use crate::paths;
use warpgauge_config::ServerConfig;
use warpgauge_model::{ErrorCode, HostPattern};

/// Remedy for an unknown host name.
const REMEDY: &str = "if it is a name of this server, start the server with it in \
                      WARPGAUGE_ALLOWED_HOSTS or server.allowed_hosts, such as \
                      `export WARPGAUGE_ALLOWED_HOSTS=gpu.example.com`";

/// Maximum length of the part of a header that an error quotes, characters.
const MAX_SHOWN: usize = 120;

#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The value of `server.host`.
    host: String,
    allowed: Vec<HostPattern>,
    /// Whether requests to other names are rejected.
    enforced: bool,
}

/// A host with an optional port, as in the `Host` header.
#[derive(Debug, PartialEq, Eq)]
struct Authority<'a> {
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads `host` or `host:port`, without user and path.
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // The colon is part of an address in brackets.
            Some((_, rest)) if rest.ends_with(']') => (text, None),
            Some((host, "")) => (host, None),
            Some((host, port)) => {
                let digits = port.bytes().all(|byte| byte.is_ascii_digit());
                (host, Some(port.parse().ok().filter(|_| digits)?))
            }
            None => (text, None),
        };
        let name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let right = match address_in_brackets(host) {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(name),
        };
        right.then_some(Self { host, port })
    }

    fn address(&self) -> Option<IpAddr> {
        match address_in_brackets(self.host) {
            Some(address) => address.parse().ok().map(IpAddr::V6),
            None => self.host.parse().ok().map(IpAddr::V4),
        }
    }

    fn is(&self, name: &str) -> bool {
        self.host.strip_suffix('.').unwrap_or(self.host).eq_ignore_ascii_case(name)
    }
}

fn address_in_brackets(host: &str) -> Option<&str> {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
}

impl Names {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let allowed = config.allowed_hosts.iter().filter_map(|text| HostPattern::parse(text));
        let allowed: Vec<HostPattern> = allowed.collect();
        let enforced = Keys::new(config).is_empty() || !allowed.is_empty();
        Self { host: config.host.clone(), allowed, enforced }
    }

    /// Rejects requests that are addressed to a name of another server, or sent by a page of
    /// another site.
    fn admit(&self, request: &Request) -> Result<(), ApiError> {
        let hosts = hosts(request)?;
        if !self.enforced {
            // The Model Context Protocol requires this check even with keys, because an agent is
            // not a web page. Browsers add their user's password to requests of any page.
            if request.uri().path() == paths::MCP || has_browser_key(request.headers()) {
                let own: Vec<_> = hosts.into_iter().filter_map(Authority::parse).collect();
                return self.check_page(request, &own);
            }
            return Ok(());
        }
        let local = match request.local_addr().0 {
            Addr::SocketAddr(address) => Some(address.ip()),
            _ => None,
        };
        let mut authorities = Vec::new();
        for host in hosts {
            let authority = Authority::parse(host).ok_or_else(|| {
                bad_host(format!("Host {} is neither a name nor an address", shown(host)))
            })?;
            if !self.knows(&authority, local) {
                return Err(ApiError::new(
                    StatusCode::FORBIDDEN,
                    ErrorCode::UnknownHost,
                    format!("{} is not known as a name of this server; {REMEDY}", shown(host)),
                ));
            }
            authorities.push(authority);
        }
        self.check_page(request, &authorities)
    }

    fn knows(&self, authority: &Authority<'_>, local: Option<IpAddr>) -> bool {
        let address = authority.address().map(|address| address.to_canonical());
        let own = |address: IpAddr| {
            address.is_loopback() || local.is_some_and(|local| local.to_canonical() == address)
        };
        // A server that listens on all addresses requires keys, and can be reached at all addresses
        // of the machine.
        let configured = || {
            !matches!(self.host.as_str(), "0.0.0.0" | "::") && {
                authority.is(&self.host) || address_in_brackets(authority.host) == Some(&self.host)
            }
        };
        address.is_some_and(own)
            || authority.is("localhost")
            || configured()
            || self.allowed.iter().any(|name| name.knows(authority.host, authority.port))
    }

    /// Rejects requests that a browser sends for a page of another site.
    fn check_page(&self, request: &Request, own: &[Authority<'_>]) -> Result<(), ApiError> {
        let headers = request.headers();
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if changes && has_browser_key(headers) && !headers.contains_key(header::ORIGIN) {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                ErrorCode::ForeignOrigin,
                "a key as a password is accepted only from pages of this server, which browsers name in \
                 `Origin`; programs send the key as X-API-Key, or Authorization: Bearer",
            ));
        }
        for origin in headers.get_all(header::ORIGIN) {
            let text = origin.to_str().unwrap_or_default();
            if !self.is_own_origin(text, own) {
                return Err(foreign(&format!("a page of {}", shown(text))));
            }
        }
        let site = one(headers, "sec-fetch-site");
        if !headers.contains_key(header::ORIGIN)
            && matches!(site, Some("cross-site" | "same-site"))
            && !is_followed_link(request)
        {
            return Err(foreign("a page of another site"));
        }
        Ok(())
    }

    /// Returns whether a page of this origin is a page of this server.
    fn is_own_origin(&self, origin: &str, own: &[Authority<'_>]) -> bool {
        let (default_port, rest) = match origin.split_once("://") {
            Some(("http", rest)) => (80, rest),
            Some(("https", rest)) => (443, rest),
            _ => return false,
        };
        let Some(page) = Authority::parse(rest) else { return false };
        let port = |authority: &Authority<'_>| authority.port.unwrap_or(default_port);
        own.iter().any(|own| own.host.eq_ignore_ascii_case(page.host) && port(own) == port(&page))
            || self.allowed.iter().any(|name| name.allows(page.host, page.port, default_port))
    }
}

/// Returns the hosts to which a request is addressed: in `Host`, and in its target if the target is
/// an absolute URL.
fn hosts(request: &Request) -> Result<Vec<&str>, ApiError> {
    let mut values = request.headers().get_all(header::HOST).iter();
    let (given, more) = (values.next(), values.next());
    if more.is_some() {
        return Err(bad_host("the request has several Host headers".to_owned()));
    }
    // HTTP/1.0 has no Host header, and no browser uses HTTP/1.0.
    if given.is_none() && request.version() > Version::HTTP_10 {
        return Err(bad_host("the request has no Host header".to_owned()));
    }
    let given = given.map(|value| value.to_str().unwrap_or_default());
    let target = request.uri().authority().map(|authority| authority.as_str());
    Ok(target.into_iter().chain(given).collect())
}

/// Returns whether a user followed a link to a page of this server.
fn is_followed_link(request: &Request) -> bool {
    let is = |name, value| one(request.headers(), name) == Some(value);
    matches!(*request.method(), Method::GET | Method::HEAD)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn bad_host(what: String) -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        ErrorCode::InvalidHost,
        format!("{what}; send one Host header, with the name or address of this server"),
    )
}

fn foreign(who: &str) -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        ErrorCode::ForeignOrigin,
        format!(
            "{who} may not use this server; if the page belongs to this server behind a proxy, add its host to \
             server.allowed_hosts (WARPGAUGE_ALLOWED_HOSTS)"
        ),
    )
}

fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(MAX_SHOWN).collect::<String>())
}

/// Accepts requests that are meant for this server.
pub(crate) struct OriginGuard<E> {
    pub(crate) names: Names,
    pub(crate) inner: E,
}

impl<E: Endpoint<Output = Response>> Endpoint for OriginGuard<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        self.names.admit(&request)?;
        self.inner.call(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_config::{Config, DEFAULT_TOML};

    fn names(host: &str, allowed: &[&str]) -> Names {
        let mut config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        config.server.host = host.to_owned();
        config.server.allowed_hosts = allowed.iter().map(|name| (*name).to_owned()).collect();
        Names::new(&config.server)
    }

    fn knows(names: &Names, host: &str) -> bool {
        let local = "127.0.0.1".parse().ok();
        Authority::parse(host).is_some_and(|authority| names.knows(&authority, local))
    }

    #[test]
    fn loopback_and_what_is_configured_is_known() {
        let ours = names("lab-7", &["gpu.example.org", "*.lab.example:8443"]);
        for host in [
            "localhost",
            "LocalHost:9000",
            "localhost.",
            "127.0.0.1",
            "127.8.9.10:1",
            "[::1]:8000",
            "[::ffff:127.0.0.1]",
            "lab-7:8000",
            "gpu.example.org",
            "GPU.example.org:4711",
            "a.lab.example:8443",
            "localhost:",
        ] {
            assert!(knows(&ours, host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0",
            "192.0.2.1",
            "[::]",
            "[::1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "notlocalhost",
            "a.lab.example",
            "lab.example:8443",
            "user@localhost",
            "localhost:80:80",
            "localhost:99999",
            "localhost:+80",
            "",
            ":80",
            "local host",
            "localhost/x",
            "[::1%lo]",
        ] {
            assert!(!knows(&ours, host), "{host}");
        }
        assert!(!knows(&names("0.0.0.0", &[]), "0.0.0.0:8000"));
        assert!(knows(&names("::1", &[]), "[::1]:8000"));
    }

    #[test]
    fn a_page_is_the_servers_own_or_of_a_listed_host() {
        let ours = names("127.0.0.1", &["gpu.example.org"]);
        let own = |origin: &str, host: &str| {
            ours.is_own_origin(origin, &[Authority::parse(host).unwrap()])
        };
        assert!(own("http://localhost:8000", "localhost:8000"));
        assert!(own("http://localhost", "localhost:80"));
        assert!(own("https://localhost:443", "localhost"));
        // The server is behind a proxy that addresses it by its IP address.
        assert!(own("https://gpu.example.org", "127.0.0.1:8000"));
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:3000",
            "http://127.0.0.1:8000",
            "https://gpu.example.org:4443",
            "ftp://localhost:8000",
            "http://localhost:8000/",
            "http://localhost:8000 http://evil.example",
            "http://user@localhost:8000",
        ] {
            assert!(!own(origin, "localhost:8000"), "{origin}");
        }
    }
}
