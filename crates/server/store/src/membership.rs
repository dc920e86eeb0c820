//! Membership of this process in the set of processes that use the database: its heartbeats, its
//! capabilities, and the recovery of jobs of dead processes. The main type is [`Membership`].

use std::sync::Arc;

use sqlx::Row;
use tokio::sync::Notify;

use super::instance::Presence;
use super::lease::give_back_again;
use super::offer::{MAX_OFFER_BYTES, Offer, Offered};
use super::read::Reader;
use super::recover::{Beat, Recover};
use super::writer::{Held, Writer};
use super::{Heartbeat, Requeued, StoreError};

/// Membership of this process in the set of processes that share a database.
pub struct Membership {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) presence: Arc<Presence>,
    /// Wakes waiting claims when a job becomes available.
    pub(super) work: Arc<Notify>,
    pub(super) held: Held,
    pub(super) offered: Offered,
}

impl Membership {
    /// Returns the name of this process as a holder of leases.
    pub fn instance(&self) -> &str {
        self.presence.instance()
    }

    /// Renews the leases of this process. Returns the jobs that it must stop. The caller repeats
    /// this within [`super::LEASE`].
    pub async fn heartbeat(&self) -> Result<Heartbeat, StoreError> {
        let presence = Arc::clone(&self.presence);
        let told = self.writer.write(Beat { presence }).await?;
        give_back_again(&self.writer, &self.held);
        Ok(told)
    }

    /// Requeues the jobs of dead processes, and jobs whose lease this process lost.
    pub async fn requeue_expired(&self) -> Result<Requeued, StoreError> {
        let presence = Arc::clone(&self.presence);
        self.writer.write(Recover { presence }).await
    }

    /// Publishes the capabilities of this process as a text for the other processes. `takes`
    /// decides by a job's requirements whether this process may take the job. Before the first
    /// call, the process takes only jobs without requirements.
    ///
    /// # Errors
    ///
    /// The text is too long, or the database fails.
    pub async fn offer(
        &self,
        text: String,
        takes: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<(), StoreError> {
        if text.len() > MAX_OFFER_BYTES {
            let problem = format!("has {} bytes; {MAX_OFFER_BYTES} are allowed", text.len());
            return Err(StoreError::Invalid { field: "offer", problem });
        }
        self.offered.set(Offer { text: Some(text), takes: Some(Arc::new(takes)) });
        self.heartbeat().await?;
        // Jobs that waited for these capabilities can now be claimed.
        self.work.notify_one();
        Ok(())
    }

    /// Returns the published capabilities of this process, or `None` before the first call of
    /// [`Self::offer`].
    pub fn own_offer(&self) -> Option<String> {
        self.offered.text()
    }

    /// Returns the published capabilities of the other live processes.
    ///
    /// # Errors
    ///
    /// The database fails.
    pub async fn offers_of_others(&self) -> Result<Vec<String>, StoreError> {
        let failed = self.reader.failed("read the capabilities of processes");
        let rows = sqlx::query(
            "SELECT instance, offers FROM instances WHERE offers IS NOT NULL AND lease_until >= $1 \
             LIMIT 10000",
        )
        .bind(super::clock::now())
        .fetch_all(&self.reader.pool)
        .await
        .map_err(&failed)?;
        let mut offers = Vec::new();
        for row in rows {
            let instance: String = row.try_get(0).map_err(&failed)?;
            if instance != self.instance() {
                offers.push(row.try_get(1).map_err(&failed)?);
            }
        }
        Ok(offers)
    }
}
