//! Libraries whose functions can replace kernels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// NVIDIA library whose functions can replace kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Library {
    /// cuSPARSE, for sparse linear algebra.
    Cusparse,
    /// cuBLAS, for dense linear algebra.
    Cublas,
}

impl Library {
    pub const ALL: [Self; 2] = [Self::Cusparse, Self::Cublas];

    /// Returns the name on the wire. Requirements list it among the languages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cusparse => "cusparse",
            Self::Cublas => "cublas",
        }
    }

    /// Returns the name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cusparse => "cuSPARSE",
            Self::Cublas => "cuBLAS",
        }
    }

    /// Returns the library with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|library| library.name() == name)
    }
}
