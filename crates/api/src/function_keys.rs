//! Who may have functions run. It is a right of its own: a kernel is judged, a function does what it likes
//! for as long as it may.

use std::collections::BTreeSet;

use poem::http::StatusCode;

use super::auth::{Keys, owner_of};
use super::error::ApiError;
use warpgauge_config::ServerConfig;
use warpgauge_model::ErrorCode;
use warpgauge_service::Caller;

/// Keys whose functions are run, by what stands for them.
#[derive(Clone)]
pub(super) struct FunctionKeys {
    /// Where there are no keys at all: whether functions are run.
    without_keys: Option<bool>,
    may: BTreeSet<String>,
    may_pickle: BTreeSet<String>,
}

impl FunctionKeys {
    pub(super) fn new(config: &ServerConfig) -> Self {
        let owners = |keys: &[String]| keys.iter().map(|key| owner_of(key.as_bytes())).collect();
        let none = Keys::new(config).is_empty();
        Self {
            without_keys: none.then_some(config.functions_without_keys),
            may: owners(&config.function_keys),
            may_pickle: owners(&config.pickle_keys),
        }
    }

    /// Refuses whoever may not have a function run, or not one with pickled objects.
    pub(super) fn admit(&self, caller: &Caller, pickles: bool) -> Result<(), ApiError> {
        let forbidden =
            |text: &str| Err(ApiError::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, text));
        match self.without_keys {
            Some(true) => Ok(()),
            Some(false) => {
                forbidden("this server runs no functions (server.functions_without_keys is false)")
            }
            None if !self.may.contains(&caller.owner) => forbidden(
                "this key may not have functions run; who runs the server can add it to \
                 server.function_keys (WARPGAUGE_FUNCTION_KEYS)",
            ),
            None if pickles && !self.may_pickle.contains(&caller.owner) => forbidden(
                "functions of this key may not have pickled objects; who runs the server can add it to \
                 server.pickle_keys (WARPGAUGE_PICKLE_KEYS)",
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_config::{Config, DEFAULT_TOML};

    fn admitted(change: impl Fn(&mut ServerConfig), key: &str) -> (bool, bool) {
        let mut config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        change(&mut config.server);
        let keys = FunctionKeys::new(&config.server);
        let caller = match key {
            "" => Caller::local(),
            key => Caller { owner: owner_of(key.as_bytes()), admin: false, handles: false },
        };
        (keys.admit(&caller, false).is_ok(), keys.admit(&caller, true).is_ok())
    }

    #[test]
    fn a_key_must_be_granted_the_right() {
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        assert_eq!(admitted(|_| {}, ""), (true, true));
        assert_eq!(admitted(|config| config.functions_without_keys = false, ""), (false, false));
        let granted = |config: &mut ServerConfig| {
            config.api_keys = owned(&["none", "some", "all", "pickles"]);
            config.function_keys = owned(&["some", "all"]);
            config.pickle_keys = owned(&["all", "pickles"]);
        };
        assert_eq!(admitted(granted, "none"), (false, false));
        assert_eq!(admitted(granted, "some"), (true, false));
        assert_eq!(admitted(granted, "all"), (true, true));
        assert_eq!(admitted(granted, "pickles"), (false, false));
        // An administrator's key is a key like others.
        let admin = |config: &mut ServerConfig| config.admin_keys = owned(&["root"]);
        assert_eq!(admitted(admin, "root"), (false, false));
        // A server whose only keys open tensors is not one without keys.
        let handles = |config: &mut ServerConfig| config.handle_keys = owned(&["opens"]);
        assert_eq!(admitted(handles, "opens"), (false, false));
    }
}
