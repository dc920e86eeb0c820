//! Webhooks: a signed POST to the URL of a job when the job ends.
//!
//! `policy` decides which URLs may be called. `signature` lets receivers verify the sender.
//! `schedule` computes the times of retries. `post` makes one attempt, and `delivery` processes the
//! queue. Undelivered messages are in the store and outlive the process. A receiver gets each
//! message at least once, unless all attempts fail.

mod delivery;
mod message;
mod policy;
mod post;
mod schedule;
mod signature;

pub use delivery::WebhookDelivery;
pub use message::{WebhookLinks, WebhookMessage, page_of_job};
pub use policy::{WebhookPolicy, WebhookRefusal};
pub use schedule::{MAX_ATTEMPTS, delay};
pub use signature::{SIGNATURE_HEADER, signature};
