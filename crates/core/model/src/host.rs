//! Patterns of hosts: those that webhooks may call, and the names of this server. The main type is
//! [`HostPattern`].

/// An entry of a list of allowed hosts. It is a name, an address, or `*.` with a suffix, and
/// optionally a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: String,
    /// Whether the pattern matches names below `host` instead of `host` itself.
    below: bool,
    port: PortPattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortPattern {
    /// The default port of the scheme.
    Default,
    Any,
    This(u16),
}

/// Maximum length of a name in the domain name system, bytes.
const MAX_HOST: usize = 253;

impl HostPattern {
    /// Parses `host`, `*.suffix`, `host:port`, `host:*`; `[::1]:port` for an IPv6 address.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // The colon belongs to an address in brackets.
            Some((_, rest)) if rest.ends_with(']') => (text, PortPattern::Default),
            Some((host, "*")) => (host, PortPattern::Any),
            Some((host, port)) => (host, PortPattern::This(port.parse().ok()?)),
            None => (text, PortPattern::Default),
        };
        let (host, below) = match host.strip_prefix("*.") {
            Some(suffix) => (suffix, true),
            None => (host, false),
        };
        let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let right = match address {
            Some(address) => !below && address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => is_name(host),
        };
        right.then(|| Self { host: plain(host), below, port })
    }

    /// Returns whether a URL with this host (as written in the URL), port and default port may be
    /// called.
    pub fn allows(&self, host: &str, port: Option<u16>, default_port: u16) -> bool {
        self.names(host)
            && match self.port {
                PortPattern::Default => port.is_none_or(|port| port == default_port),
                PortPattern::Any => true,
                PortPattern::This(this) => port.unwrap_or(default_port) == this,
            }
    }

    /// Returns whether the pattern matches the host and port that a request names. The port matters
    /// only if the pattern has one, because tunnels and proxies use other ports.
    pub fn knows(&self, host: &str, port: Option<u16>) -> bool {
        self.names(host)
            && match self.port {
                PortPattern::Default | PortPattern::Any => true,
                PortPattern::This(this) => port == Some(this),
            }
    }

    fn names(&self, host: &str) -> bool {
        let host = plain(host);
        if !self.below {
            return host == self.host;
        }
        let below = host.strip_suffix(&self.host).and_then(|rest| rest.strip_suffix('.'));
        below.is_some_and(|rest| !rest.is_empty())
    }
}

fn is_name(host: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    host.len() <= MAX_HOST && host.split('.').all(label)
}

/// Normalises case and the final dot of a name.
fn plain(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_pattern() {
        for wrong in [
            "",
            "*",
            "*.",
            "a..b",
            "http://a",
            "a/b",
            "a:",
            "a:x",
            "a:70000",
            "*.[::1]",
            "::1",
            "a b",
            "*a.example",
            "a.*.example",
            "user@a",
        ] {
            assert_eq!(HostPattern::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn names_match_whole_or_below() {
        let allows = |pattern: &str, host: &str, port: Option<u16>| {
            HostPattern::parse(pattern).expect("a pattern").allows(host, port, 443)
        };
        assert!(allows("ci.example", "CI.example.", None));
        assert!(!allows("ci.example", "evil-ci.example", None));
        assert!(!allows("ci.example", "a.ci.example", None));
        assert!(allows("*.example", "a.b.example", None));
        for other in ["example", ".example", "evilexample", "a.example.org"] {
            assert!(!allows("*.example", other, None), "{other}");
        }
        assert!(allows("[::1]:9", "[::1]", Some(9)));
        assert!(!allows("127.0.0.1", "127.0.0.2", None));
    }

    #[test]
    fn ports_are_those_of_the_scheme_unless_said() {
        let allows = |pattern: &str, port: Option<u16>| {
            HostPattern::parse(pattern).expect("a pattern").allows("h", port, 443)
        };
        assert!(allows("h", None) && allows("h", Some(443)) && !allows("h", Some(6379)));
        assert!(allows("h:8443", Some(8443)) && !allows("h:8443", None));
        assert!(allows("h:443", None));
        assert!(allows("h:*", Some(1)) && allows("h:*", None));
    }
}
