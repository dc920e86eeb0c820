//! The type of requests that satisfy the contract's rules: [`Checked`].

use std::ops::Deref;

use crate::{
    CompareRequest, ContractError, ContractLimits, EvaluateRequest, validate, validate_compare,
};

/// A request that can be checked against rules.
pub trait Rules {
    /// Checks all rules, without decoding tensor data.
    ///
    /// # Errors
    /// Every mistake, up to `limits.max_errors`.
    fn check(&self, limits: &ContractLimits) -> Result<(), Vec<ContractError>>;

    /// Fills in values that one part of the request takes from another.
    fn settle(&mut self) {}
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

    fn settle(&mut self) {
        self.settle_arguments();
    }
}

/// A request that satisfies the contract's rules. A function that takes one need not check it.
#[derive(Debug, Clone)]
pub struct Checked<T>(T);

impl<T: Rules> Checked<T> {
    /// Fills in the values that parts of a request take from one another, and checks the request.
    ///
    /// # Errors
    /// Every mistake, up to `limits.max_errors`.
    pub fn new(mut request: T, limits: &ContractLimits) -> Result<Self, Vec<ContractError>> {
        request.settle();
        request.check(limits)?;
        Ok(Self(request))
    }
}

impl<T> Checked<T> {
    /// Returns the request. Later changes to it are not checked.
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
