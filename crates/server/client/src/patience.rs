//! Retries requests for a limited time if a server is full, restarting or unreachable. The main
//! type is [`RetryPolicy`].

use std::time::{Duration, Instant};

use crate::ClientError;

/// First waiting time if the server suggests none. Each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Maximum waiting time before a retry, even if the server suggests a longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Function that is called for each pause. It receives the reason, and returns when the pause is
/// over.
type Pause = Box<dyn FnMut(&ClientError, Duration) + Send>;

/// Limits the time for retries after each failed request.
pub struct RetryPolicy {
    limit: Duration,
    pause: Pause,
    /// Whether the server has answered before. If no server has ever answered, the address is
    /// probably wrong, and a retry would not help.
    met: bool,
    /// Time at which the current failure began, and the next waiting time.
    trouble: Option<(Instant, Duration)>,
}

impl RetryPolicy {
    /// Creates a policy that retries for `limit` after each failure. If `limit` is zero, it never
    /// retries. `pause` is called between two attempts. It receives the reason, and returns when
    /// the pause is over.
    pub fn new(
        limit: Duration,
        pause: impl FnMut(&ClientError, Duration) + Send + 'static,
    ) -> Self {
        Self { limit, pause: Box::new(pause), met: false, trouble: None }
    }

    /// Retries until there is an answer or a permanent error, or until the limit is reached.
    ///
    /// # Errors
    /// The last error.
    pub fn with<T>(
        &mut self,
        mut ask: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        loop {
            match ask() {
                Ok(answer) => {
                    self.answered();
                    return Ok(answer);
                }
                Err(error) => self.pause(error)?,
            }
        }
    }

    /// Records an answer. After the next failure, the full limit applies again.
    pub(crate) fn answered(&mut self) {
        self.met = true;
        self.trouble = None;
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The given error, if it is permanent or the limit is reached.
    pub(crate) fn pause(&mut self, error: ClientError) -> Result<(), ClientError> {
        if !self.worth_waiting(&error) {
            return Err(error);
        }
        let (since, wait) = self.trouble.unwrap_or_else(|| (Instant::now(), FIRST_WAIT));
        let pause =
            error.retry_after().unwrap_or(wait).clamp(Duration::from_millis(1), LONGEST_WAIT);
        if since.elapsed() + pause > self.limit {
            return Err(error);
        }
        (self.pause)(&error, pause);
        self.trouble = Some((since, (wait * 2).min(LONGEST_WAIT)));
        Ok(())
    }

    /// Returns whether a retry may succeed later.
    fn worth_waiting(&mut self, error: &ClientError) -> bool {
        if !error.is_broken() || error.is_late() {
            return false;
        }
        // Any other error shows that a server or a proxy received the request: the server is full
        // or restarting, or the proxy failed.
        self.met |= !matches!(error, ClientError::Connect { .. });
        self.met
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::Transport;

    /// Returns a policy for this many seconds whose pauses take no time, and a channel of these
    /// pauses.
    fn patience(limit_s: u64) -> (RetryPolicy, Receiver<Duration>) {
        let (sender, pauses) = channel();
        let pause = move |_: &ClientError, pause| {
            let _ = sender.send(pause);
        };
        (RetryPolicy::new(Duration::from_secs(limit_s), pause), pauses)
    }

    fn refused(status: u16, retry_after_s: Option<u64>) -> ClientError {
        ClientError::Refused {
            url: "u".to_owned(),
            status,
            message: "m".to_owned(),
            problems: Vec::new(),
            retry_after: retry_after_s.map(Duration::from_secs),
        }
    }

    fn away() -> ClientError {
        let source = Transport(ureq::Error::ConnectionFailed);
        ClientError::Connect { url: "u".to_owned(), source }
    }

    /// Runs a policy on these results in turn; the last one repeats. Returns whether it succeeded,
    /// and the number of attempts.
    fn asked(patience: &mut RetryPolicy, answers: Vec<Result<(), ClientError>>) -> (bool, usize) {
        let mut answers = answers.into_iter();
        let mut count = 0;
        let outcome = patience.with(|| {
            count += 1;
            answers.next().expect("asked once too often")
        });
        (outcome.is_ok(), count)
    }

    #[test]
    fn a_full_server_is_asked_again() {
        let (mut patience, _pauses) = patience(60);
        let answers = vec![Err(refused(429, Some(0))), Err(refused(503, Some(0))), Ok(())];
        assert_eq!(asked(&mut patience, answers), (true, 3));
        // These errors are permanent.
        assert_eq!(asked(&mut patience, vec![Err(refused(400, Some(0)))]), (false, 1));
        assert_eq!(asked(&mut patience, vec![Err(refused(500, Some(0)))]), (false, 1));
    }

    #[test]
    fn a_server_that_was_never_met_is_not_waited_for() {
        let (mut patience, _pauses) = patience(60);
        assert_eq!(asked(&mut patience, vec![Err(away())]), (false, 1));
        assert_eq!(asked(&mut patience, vec![Ok(())]), (true, 1));
        assert_eq!(asked(&mut patience, vec![Err(away()), Ok(())]), (true, 2));
    }

    #[test]
    fn patience_ends() {
        let (mut patience, _pauses) = patience(0);
        assert_eq!(asked(&mut patience, vec![Err(refused(429, None))]), (false, 1));
    }

    #[test]
    fn pauses_grow_and_the_servers_word_counts_within_bounds() {
        let (mut patience, pauses) = patience(60);
        let mut answers = (0..7).map(|_| Err(refused(503, None))).collect::<Vec<_>>();
        answers.extend([Err(refused(503, Some(3))), Err(refused(503, Some(900))), Ok(())]);
        assert_eq!(asked(&mut patience, answers), (true, 10));
        let seconds = pauses.try_iter().map(|pause| pause.as_secs_f64()).collect::<Vec<_>>();
        assert_eq!(seconds, [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 3.0, 15.0]);
    }
}
