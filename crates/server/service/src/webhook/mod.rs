//! Tells others that a job has ended: a signed POST to the URL that was given with the job.
//!
//! `policy` says which URLs are called at all, `signature` how a receiver knows that it was us,
//! `schedule` when it is tried again, `post` is one attempt, and `delivery` does the work: what is not
//! delivered yet is in the store, and survives the process. A receiver gets each message at least
//! once.

mod delivery;
mod message;
mod policy;
mod post;
mod schedule;
mod signature;

pub use delivery::WebhookDelivery;
pub use message::{WebhookLinks, WebhookMessage};
pub use policy::{WebhookPolicy, WebhookRefusal};
pub use schedule::{MAX_ATTEMPTS, delay};
pub use signature::{SIGNATURE_HEADER, signature};
