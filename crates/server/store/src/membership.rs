//! This process among those that use the database: that it lives, what it offers, and who is gone.

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

/// The part of this process among the processes that share a database.
pub struct Membership {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) presence: Arc<Presence>,
    /// Rings when jobs begin to wait.
    pub(super) work: Arc<Notify>,
    pub(super) held: Held,
    pub(super) offered: Offered,
}

impl Membership {
    /// Names this process as the holder of leases.
    pub fn instance(&self) -> &str {
        self.presence.instance()
    }

    /// Renews the leases of this process; what it must stop working on. Due every [`super::HEARTBEAT`].
    pub async fn heartbeat(&self) -> Result<Heartbeat, StoreError> {
        let presence = Arc::clone(&self.presence);
        let told = self.writer.write(Beat { presence }).await?;
        give_back_again(&self.writer, &self.held);
        Ok(told)
    }

    /// Queues the jobs of processes that are gone again.
    pub async fn requeue_expired(&self) -> Result<Requeued, StoreError> {
        let presence = Arc::clone(&self.presence);
        self.writer.write(Recover { presence }).await
    }

    /// Says what this process has, as a text for the other processes that use the database, and which
    /// jobs it takes, by what they require. Until then it takes jobs that require nothing.
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
        // Jobs that waited for this are work now.
        self.work.notify_one();
        Ok(())
    }

    /// What this process said that it has; `None`: nothing yet.
    pub fn own_offer(&self) -> Option<String> {
        self.offered.text()
    }

    /// What the other processes offer that live, as far as is known.
    ///
    /// # Errors
    ///
    /// The database fails.
    pub async fn offers_of_others(&self) -> Result<Vec<String>, StoreError> {
        let failed = self.reader.failed("look for what processes offer");
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
