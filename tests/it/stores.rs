//! The same test with its jobs in SQLite and in PostgreSQL.

use std::path::Path;

use crate::server::{Server, data_directory};

#[path = "../support/postgres.rs"]
pub mod postgres;

/// Where the servers of one test keep their jobs; goes with the test.
pub struct Home {
    data: tempfile::TempDir,
    /// With the directory it is in, which is the database user's.
    postgres: Option<(postgres::Server, tempfile::TempDir)>,
}

impl Home {
    /// The file in the data directory.
    pub fn sqlite() -> Self {
        Self { data: data_directory(), postgres: None }
    }

    /// A PostgreSQL of its own.
    pub fn postgres() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = postgres::Server::start(directory.path());
        Self { data: data_directory(), postgres: Some((server, directory)) }
    }

    pub fn is_postgres(&self) -> bool {
        self.postgres.is_some()
    }

    /// The data directory, which there is in any case.
    pub fn path(&self) -> &Path {
        self.data.path()
    }

    /// URL of the database, as one who only reads it uses it.
    pub fn url(&self) -> String {
        match &self.postgres {
            Some((server, _)) => server.url(),
            None => format!("sqlite://{}?mode=ro", self.path().join("warpgauge.db").display()),
        }
    }

    /// Starts a server with more arguments.
    pub fn start(&self, arguments: &[&str]) -> Server {
        let url = self.postgres.as_ref().map(|(server, _)| server.url());
        let environment: Vec<_> =
            url.iter().map(|url| ("WARPGAUGE_DATABASE_URL", url.as_str())).collect();
        Server::start_in(self.path(), arguments, &environment)
    }
}

/// Tests that take a [`Home`], with either.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[test]
            fn $name() {
                super::$name(&crate::stores::Home::sqlite());
            })+
        }
        mod on_postgres {
            $(#[test]
            fn $name() {
                needs!("PostgreSQL", crate::stores::postgres::installed());
                super::$name(&crate::stores::Home::postgres());
            })+
        }
    };
}

pub(crate) use on_both;
