//! Requests that meet the contract's rules, as a type.

use std::ops::Deref;

use crate::{
    CompareRequest, ContractError, ContractLimits, EvaluateRequest, validate, validate_compare,
};

/// A request that the contract has rules for.
pub trait Rules {
    /// Holds the request against all rules, without decoding tensor data.
    ///
    /// # Errors
    /// Every mistake in it, up to `limits.max_errors`.
    fn check(&self, limits: &ContractLimits) -> Result<(), Vec<ContractError>>;
}

impl Rules for EvaluateRequest {
    fn check(&self, limits: &ContractLimits) -> Result<(), Vec<ContractError>> {
        validate(self, limits)
    }
}

impl Rules for CompareRequest {
    fn check(&self, limits: &ContractLimits) -> Result<(), Vec<ContractError>> {
        validate_compare(self, limits)
    }
}

/// A request that meets the contract's rules. What takes one need not check it.
#[derive(Debug, Clone)]
pub struct Checked<T>(T);

impl<T: Rules> Checked<T> {
    /// Takes a request that meets all rules.
    ///
    /// # Errors
    /// Every mistake in it, up to `limits.max_errors`.
    pub fn new(request: T, limits: &ContractLimits) -> Result<Self, Vec<ContractError>> {
        request.check(limits)?;
        Ok(Self(request))
    }
}

impl<T> Checked<T> {
    /// The request itself. What is changed in it is no longer checked.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
