//! Waiting for a server that is full, restarting or away: for a while, and not for ever.

use std::time::{Duration, Instant};

use super::remote::RemoteError;
use super::terminal::Terminal;

/// First wait where the server does not say how long; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Longest single wait, whatever the server says.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// How long to wait for a server, each time that it does not answer as it should.
pub(super) struct Patience {
    limit: Duration,
    terminal: Terminal,
    /// Whether it has answered before: an address where nobody ever was is a mistake.
    met: bool,
    /// Since when it has not answered, and how long to wait next.
    trouble: Option<(Instant, Duration)>,
}

impl Patience {
    pub(super) fn new(limit_s: f64, terminal: Terminal) -> Self {
        // The command line bounds it; what it lets through is a duration.
        let limit = Duration::try_from_secs_f64(limit_s).unwrap_or_default();
        Self { limit, terminal, met: false, trouble: None }
    }

    /// Asks until there is an answer, an error that waiting does not mend, or no patience left.
    pub(super) fn with<T>(
        &mut self,
        mut ask: impl FnMut() -> Result<T, RemoteError>,
    ) -> Result<T, RemoteError> {
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

    /// The server is there: whatever comes next has all of the patience.
    pub(super) fn answered(&mut self) {
        self.met = true;
        self.trouble = None;
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// The error itself, where waiting does not mend it or took long enough already.
    pub(super) fn pause(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        if !self.worth_waiting(&error) {
            return Err(error);
        }
        let (since, wait) = self.trouble.unwrap_or_else(|| (Instant::now(), FIRST_WAIT));
        let pause =
            error.retry_after().unwrap_or(wait).clamp(Duration::from_millis(1), LONGEST_WAIT);
        if since.elapsed() + pause > self.limit {
            return Err(error);
        }
        self.terminal.note(&format!(
            "warpgauge: {}; trying again in {:.1} s",
            without_advice(&error.to_string()),
            pause.as_secs_f64()
        ));
        std::thread::sleep(pause);
        self.trouble = Some((since, (wait * 2).min(LONGEST_WAIT)));
        Ok(())
    }

    /// Whether the same question may be answered later.
    fn worth_waiting(&mut self, error: &RemoteError) -> bool {
        if !error.is_broken() || error.is_late() {
            return false;
        }
        // Else it was there, and took the question: it is full, it went down, or a proxy did.
        self.met |= !matches!(error, RemoteError::Connect { .. });
        self.met
    }
}

/// What is wrong, without the advice for people: it is acted on already.
pub(super) fn without_advice(text: &str) -> &str {
    text.split([';', '\n']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Terminal = Terminal { quiet: true, colour: false, interactive: false };

    fn refused(status: u16) -> RemoteError {
        RemoteError::Refused {
            url: "u".to_owned(),
            status,
            message: "m".to_owned(),
            retry_after: Some(Duration::ZERO),
        }
    }

    fn away() -> RemoteError {
        RemoteError::Connect { url: "u".to_owned(), source: ureq::Error::ConnectionFailed }
    }

    /// Asks with these answers in turn; the last one stays. Whether it came to an answer, and how
    /// often it asked.
    fn asked(patience: &mut Patience, answers: Vec<Result<(), RemoteError>>) -> (bool, usize) {
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
        let mut patience = Patience::new(60.0, QUIET);
        assert_eq!(
            asked(&mut patience, vec![Err(refused(429)), Err(refused(503)), Ok(())]),
            (true, 3)
        );
        // What waiting does not mend.
        assert_eq!(asked(&mut patience, vec![Err(refused(400))]), (false, 1));
        assert_eq!(asked(&mut patience, vec![Err(refused(500))]), (false, 1));
    }

    #[test]
    fn a_server_that_was_never_met_is_not_waited_for() {
        let mut patience = Patience::new(60.0, QUIET);
        assert_eq!(asked(&mut patience, vec![Err(away())]), (false, 1));
        assert_eq!(asked(&mut patience, vec![Ok(())]), (true, 1));
        assert_eq!(asked(&mut patience, vec![Err(away()), Ok(())]), (true, 2));
    }

    #[test]
    fn patience_ends() {
        let mut patience = Patience::new(0.0, QUIET);
        assert_eq!(asked(&mut patience, vec![Err(refused(429))]), (false, 1));
    }
}
