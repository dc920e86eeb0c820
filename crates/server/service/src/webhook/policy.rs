//! Decides which URLs webhooks may call. The main type is [`WebhookPolicy`].

use ureq::http::Uri;

use warpgauge_model::HostPattern;

/// Maximum length of a URL, bytes.
const MAX_URL: usize = 2_048;

/// Hosts that may be called, and the secret that signs messages.
#[derive(Clone)]
pub struct WebhookPolicy {
    hosts: Vec<HostPattern>,
    secret: String,
    /// Address at which users reach the server, for links in messages. It may be empty.
    public_url: String,
}

/// Reasons why a URL may not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookRefusal {
    /// No hosts are allowed.
    #[error(
        "webhooks are disabled: the operator must list hosts in server.webhook_hosts, e.g. \
         [\"ci.example.org\"]"
    )]
    Off,
    /// No secret for signing messages is set.
    #[error(
        "webhooks cannot be signed: the operator must set server.webhook_secret \
         (WARPGAUGE_WEBHOOK_SECRET)"
    )]
    NoSecret,
    /// The text is not a URL, or URLs of this kind are not allowed.
    #[error(
        "not a valid webhook URL; expected http:// or https:// with a host, without a user, in \
         at most {MAX_URL} bytes"
    )]
    Url,
    /// The host is not allowed.
    #[error("webhooks may not be sent to {host}; the operator can add it to server.webhook_hosts")]
    Host {
        /// Host and port.
        host: String,
    },
}

impl WebhookPolicy {
    /// Creates a policy that allows URLs with these hosts, each in the syntax of
    /// [`HostPattern::parse`]. `secret` signs messages.
    pub fn new(hosts: &[String], secret: &str) -> Self {
        let hosts = hosts.iter().filter_map(|text| HostPattern::parse(text));
        Self { hosts: hosts.collect(), secret: secret.to_owned(), public_url: String::new() }
    }

    /// Adds links to pages of jobs at this address to messages, unless it is empty.
    pub fn linking_to(self, public_url: &str) -> Self {
        Self { public_url: public_url.to_owned(), ..self }
    }

    pub(super) fn public_url(&self) -> &str {
        &self.public_url
    }

    /// Checks whether this URL may be called.
    ///
    /// # Errors
    /// The reason why the URL may not be called, and the setting that changes this.
    pub fn check(&self, url: &str) -> Result<(), WebhookRefusal> {
        if self.hosts.is_empty() {
            return Err(WebhookRefusal::Off);
        }
        if self.secret.is_empty() {
            return Err(WebhookRefusal::NoSecret);
        }
        let uri: Uri = Some(url)
            .filter(|url| url.len() <= MAX_URL)
            .and_then(|url| url.parse().ok())
            .ok_or(WebhookRefusal::Url)?;
        let default_port = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(WebhookRefusal::Url),
        };
        let (Some(authority), Some(host)) = (uri.authority(), uri.host()) else {
            return Err(WebhookRefusal::Url);
        };
        // In a log, a user name could look like the host, and an invalid port would be dropped
        // silently.
        let port = match authority.as_str().strip_prefix(host) {
            Some("") => None,
            Some(rest) => Some(
                rest.strip_prefix(':')
                    .and_then(|port| port.parse().ok())
                    .ok_or(WebhookRefusal::Url)?,
            ),
            None => return Err(WebhookRefusal::Url),
        };
        if host.is_empty() {
            return Err(WebhookRefusal::Url);
        }
        if self.hosts.iter().any(|pattern| pattern.allows(host, port, default_port)) {
            Ok(())
        } else {
            Err(WebhookRefusal::Host { host: authority.as_str().to_owned() })
        }
    }

    /// Returns the secret that signs messages.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_config::{Config, DEFAULT_TOML};

    fn policy(hosts: &[&str], secret: &str) -> WebhookPolicy {
        let mut config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        config.server.webhook_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        config.server.webhook_secret = secret.to_owned();
        WebhookPolicy::new(&config.server.webhook_hosts, &config.server.webhook_secret)
    }

    const SECRET: &str = "0123456789abcdef";

    #[test]
    fn without_hosts_or_secret_nothing_is_called() {
        assert_eq!(policy(&[], SECRET).check("https://h/"), Err(WebhookRefusal::Off));
        assert_eq!(policy(&["h"], "").check("https://h/"), Err(WebhookRefusal::NoSecret));
    }

    #[test]
    fn only_listed_hosts_are_called() {
        let policy = policy(&["ci.example", "*.hooks.example:*", "127.0.0.1:9"], SECRET);
        for right in [
            "https://ci.example/a?b=c",
            "http://CI.example:80",
            "http://a.hooks.example:8080/",
            "http://127.0.0.1:9/",
        ] {
            assert_eq!(policy.check(right), Ok(()), "{right}");
        }
        for host in [
            "http://127.0.0.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "http://localhost:8000/",
            "https://ci.example:22/",
            "https://ci.example.evil.example/",
            "https://hooks.example/",
            "http://2130706433/",
            "http://0x7f.1/",
        ] {
            assert!(matches!(policy.check(host), Err(WebhookRefusal::Host { .. })), "{host}");
        }
    }

    #[test]
    fn what_is_no_plain_http_url_is_refused() {
        let policy = policy(&["ci.example:*"], SECRET);
        let long = format!("https://ci.example/{}", "x".repeat(MAX_URL));
        for wrong in [
            "",
            "ci.example",
            "/path",
            "ftp://ci.example/",
            "file:///etc/passwd",
            "https://user@ci.example/",
            "https://ci.example@evil.example/",
            "https://ci.example:70000/",
            "https://ci.example:/",
            "https://ci example/",
            "https://ci.example/\r\nx: y",
            "http://",
            &long,
        ] {
            assert_eq!(policy.check(wrong), Err(WebhookRefusal::Url), "{wrong:?}");
        }
    }
}
