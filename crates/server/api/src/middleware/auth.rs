//! API keys. If any key is configured, a path requires a key unless it is listed as open. The key
//! identifies the owner.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use poem::http::{HeaderMap, Method, StatusCode, header};
use poem::{Endpoint, Request, Response};
use subtle::ConstantTimeEq;

use super::key_attempts::{KeyAttempts, TooMany};
use crate::error::ApiError;
use crate::paths::is_in_book;
use crate::response::html::is_asset;
use warpgauge_config::ServerConfig;
use warpgauge_model::ErrorCode;
use warpgauge_service::Caller;

/// The state of the server that a request may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sees {
    /// Only whether the server is ready, because the request has no key.
    State,
    /// Also the devices, because the request has a key.
    Devices,
    /// Everything, because the request has an administrator's key or the server has no keys.
    Everything,
}

impl Sees {
    fn of(caller: &Caller) -> Self {
        if caller.admin { Self::Everything } else { Self::Devices }
    }
}

/// Paths that can be read without a key, in addition to the files that pages load.
const OPEN: [&str; 7] =
    ["/", "/health", "/live", "/docs", "/openapi.json", "/openapi.yaml", "/openapi-client.json"];

/// Rejects callers that are not administrators.
#[derive(Clone, Copy)]
pub(crate) struct AdminKeys {
    exist: bool,
}

impl AdminKeys {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self { exist: config.admin_keys.iter().any(|key| !key.is_empty()) }
    }

    /// Rejects callers that may not use an administrator's operation.
    pub(crate) fn admit(self, caller: &Caller) -> Result<(), ApiError> {
        if caller.admin {
            return Ok(());
        }
        let how = if self.exist {
            "use one of server.admin_keys"
        } else {
            "server.admin_keys (WARPGAUGE_ADMIN_KEYS) contains no key; add one"
        };
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            ErrorCode::Forbidden,
            format!("this operation is for administrators: {how}"),
        ))
    }
}

/// Rejects callers that may not run functions, and callers that may not send pickled objects to
/// functions. Administrators need the permission as well: a kernel runs under the judge's checks,
/// whereas a function may do anything until its time limit.
pub(crate) fn admit_function(caller: &Caller, pickles: bool) -> Result<(), ApiError> {
    let text = if !caller.functions && caller.owner.is_empty() {
        "this server runs no functions (server.functions_without_keys is false)"
    } else if !caller.functions {
        "this key may not run functions; the operator can add it to \
         server.function_keys (WARPGAUGE_FUNCTION_KEYS)"
    } else if pickles && !caller.pickles {
        "functions of this key may not contain pickled objects; the operator can add it to \
         server.pickle_keys (WARPGAUGE_PICKLE_KEYS)"
    } else {
        return Ok(());
    };
    Err(ApiError::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, text))
}

/// Rights of a key beyond access to the server.
#[derive(Clone, Copy, Default)]
struct Rights {
    admin: bool,
    handles: bool,
    functions: bool,
    pickles: bool,
}

/// A configured key.
#[derive(Clone)]
struct Key {
    hash: blake3::Hash,
    rights: Rights,
}

/// The hashes of the configured keys. Hashes have equal lengths, so they can be compared in
/// constant time, and neither memory dumps nor logs contain keys.
#[derive(Clone)]
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// The caller of a server without keys.
    anybody: Caller,
}

/// Number of hexadecimal digits of a key's hash that identify its owner: 64 bits distinguish 10,000
/// keys.
const OWNER_DIGITS: usize = 16;

fn owner(hash: &blake3::Hash) -> String {
    hash.to_hex()[..OWNER_DIGITS].to_owned()
}

impl Keys {
    /// Collects the configured keys. A key in several lists has the rights of all these lists.
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let none = Rights::default();
        let lists = [
            (&config.api_keys, none),
            (&config.admin_keys, Rights { admin: true, handles: true, ..none }),
            (&config.handle_keys, Rights { handles: true, ..none }),
            (&config.function_keys, Rights { functions: true, ..none }),
            (&config.pickle_keys, Rights { pickles: true, ..none }),
        ];
        let keys = lists
            .into_iter()
            .flat_map(|(keys, rights)| keys.iter().map(move |key| (key, rights)))
            .filter(|(key, _)| !key.is_empty())
            .map(|(key, rights)| Key { hash: blake3::hash(key.as_bytes()), rights })
            .collect();
        let functions = config.functions_without_keys;
        Self { keys, anybody: Caller { functions, pickles: functions, ..Caller::local() } }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the caller that owns a key. Always compares with every key, so that the duration
    /// reveals nothing.
    fn caller(&self, candidate: &blake3::Hash) -> Option<Caller> {
        let no = subtle::Choice::from(0);
        let (mut found, mut admin, mut handles, mut functions, mut pickles) = (no, no, no, no, no);
        for key in &self.keys {
            let equal = key.hash.as_bytes().ct_eq(candidate.as_bytes());
            let has = |right: bool| equal & subtle::Choice::from(u8::from(right));
            found |= equal;
            admin |= has(key.rights.admin);
            handles |= has(key.rights.handles);
            functions |= has(key.rights.functions);
            pickles |= has(key.rights.pickles);
        }
        bool::from(found).then(|| Caller {
            owner: owner(candidate),
            admin: admin.into(),
            handles: handles.into(),
            functions: functions.into(),
            pickles: pickles.into(),
        })
    }

    /// Returns the caller that owns the request's key. A wrong key counts as a guess by the
    /// client's address.
    fn admit(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
        guesses: &KeyAttempts,
    ) -> Result<Caller, ApiError> {
        let given = given(headers);
        if given.is_empty() {
            return Err(ApiError::without_key());
        }
        guesses.take(from, &given, Instant::now()).map_err(|TooMany(wait)| too_many(wait))?;
        let mut found = None;
        for candidate in given {
            if let Some(caller) = self.caller(&candidate) {
                guesses.right(from, candidate, Instant::now());
                found = found.or(Some(caller));
            }
        }
        found.ok_or_else(|| unauthorized("the API key is not known to this server"))
    }
}

/// Returns the hashes of the keys that a request contains.
fn given(headers: &HeaderMap) -> Vec<blake3::Hash> {
    let key = headers.get("x-api-key").map(|value| value.as_bytes());
    let bearer =
        headers.get(header::AUTHORIZATION).and_then(|value| bearer_token(value.as_bytes()));
    let password = password(headers);
    [key, bearer, password.as_deref()].into_iter().flatten().map(blake3::hash).collect()
}

/// Returns whether a request has a key in the form in which a browser adds it to every request to
/// this server, also to those of pages of other sites.
pub(crate) fn has_browser_key(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| basic_token(value.as_bytes()).is_some())
}

/// Returns the password of basic authentication (RFC 7617), which browsers ask their user for. The
/// user name does not matter.
fn password(headers: &HeaderMap) -> Option<Vec<u8>> {
    let token = basic_token(headers.get(header::AUTHORIZATION)?.as_bytes())?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(token).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}

fn basic_token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(6)?;
    scheme.eq_ignore_ascii_case(b"basic ").then(|| token.trim_ascii())
}

fn too_many(wait: Duration) -> ApiError {
    let seconds = wait.as_secs_f64().ceil() as u64;
    ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::TooManyWrongKeys,
        format!(
            "too many wrong API keys came from this address; try again in {} s with a key of this \
             server's keys",
            seconds.max(1)
        ),
    )
    .retry_after(seconds)
}

fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, message)
}

/// Accepts requests that have a valid key or an open path.
pub(crate) struct Guard<E> {
    pub(crate) keys: Keys,
    pub(crate) guesses: KeyAttempts,
    pub(crate) inner: E,
}

impl<E: Endpoint<Output = Response>> Endpoint for Guard<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let path = request.uri().path();
        let open = (is_asset(path) || OPEN.contains(&path) || is_in_book(path))
            && matches!(*request.method(), Method::GET | Method::HEAD);
        let caller = if self.keys.is_empty() {
            Ok(self.keys.anybody.clone())
        } else {
            let from = request.remote_addr().as_socket_addr().map(|address| address.ip());
            self.keys.admit(request.headers(), from, &self.guesses)
        };
        match caller {
            Ok(caller) => {
                request.set_data(Sees::of(&caller));
                request.set_data(caller);
            }
            // A wrong key has the same effect as no key.
            Err(_) if open => {
                request.set_data(Sees::State);
            }
            Err(error) => return Err(error.into()),
        }
        self.inner.call(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_config::{Config, DEFAULT_TOML};

    fn config(api: &[&str], admin: &[&str]) -> ServerConfig {
        let mut config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        config.server.api_keys = api.iter().map(|key| (*key).to_owned()).collect();
        config.server.admin_keys = admin.iter().map(|key| (*key).to_owned()).collect();
        config.server
    }

    #[test]
    fn every_key_is_an_owner_of_its_own() {
        let config = config(&["one", "two", "both"], &["root", "both"]);
        let keys = Keys::new(&config);
        let caller = |key: &str| keys.caller(&blake3::hash(key.as_bytes()));
        let (one, two) = (caller("one").unwrap(), caller("two").unwrap());
        assert_ne!(one.owner, two.owner);
        assert_eq!(one.owner.len(), OWNER_DIGITS);
        assert!(!one.admin && caller("root").unwrap().admin && caller("both").unwrap().admin);
        assert_eq!(caller("three"), None);
        let error = AdminKeys::new(&config).admit(&one).unwrap_err();
        assert!(error.body().error.contains("use one of"), "{}", error.body().error);
    }

    /// Returns whether a key may run functions, and functions with pickled objects.
    fn admitted(change: impl Fn(&mut ServerConfig), key: &str) -> (bool, bool) {
        let mut config = config(&[], &[]);
        change(&mut config);
        let keys = Keys::new(&config);
        let caller = match key {
            "" => keys.anybody,
            key => keys.caller(&blake3::hash(key.as_bytes())).unwrap(),
        };
        (admit_function(&caller, false).is_ok(), admit_function(&caller, true).is_ok())
    }

    #[test]
    fn functions_are_a_right_of_their_own() {
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        assert_eq!(admitted(|_| {}, ""), (true, true));
        assert_eq!(admitted(|config| config.functions_without_keys = false, ""), (false, false));
        let granted = |config: &mut ServerConfig| {
            config.api_keys = owned(&["none", "some"]);
            config.function_keys = owned(&["some", "all"]);
            config.pickle_keys = owned(&["all", "pickles"]);
        };
        assert_eq!(admitted(granted, "none"), (false, false));
        assert_eq!(admitted(granted, "some"), (true, false));
        // A key in any list gives access.
        assert_eq!(admitted(granted, "all"), (true, true));
        assert_eq!(admitted(granted, "pickles"), (false, false));
        let admin = |config: &mut ServerConfig| config.admin_keys = owned(&["root"]);
        assert_eq!(admitted(admin, "root"), (false, false));
        let handles = |config: &mut ServerConfig| config.handle_keys = owned(&["opens"]);
        assert_eq!(admitted(handles, "opens"), (false, false));
        // If only functions have keys, the server still requires keys.
        let functions = |config: &mut ServerConfig| config.function_keys = owned(&["runs"]);
        assert_eq!(admitted(functions, "runs"), (true, false));
        let mut config = config(&[], &[]);
        functions(&mut config);
        assert!(!Keys::new(&config).is_empty());
    }

    #[test]
    fn without_administrators_the_error_names_the_setting() {
        let config = config(&["one"], &[]);
        let caller = Keys::new(&config).caller(&blake3::hash(b"one")).unwrap();
        let error = AdminKeys::new(&config).admit(&caller).unwrap_err();
        assert_eq!(error.body().code, ErrorCode::Forbidden);
        assert!(error.body().error.contains("WARPGAUGE_ADMIN_KEYS"), "{}", error.body().error);
        assert!(AdminKeys::new(&config).admit(&Caller::local()).is_ok());
    }
}
