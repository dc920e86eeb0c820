//! Builds for Python processes, and builds of whole programs. Concurrent identical builds run once.
//! Results are cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex as AsyncMutex;

use super::Compiler;
use crate::build::{
    BuildOrder, BuildOutput, Plan, ProgramOrder, PythonHost, lacks_for_programs, planned,
    planned_program,
};
use crate::cache::{Kept, Key};
use crate::error::CompileError;
use crate::exceeded;
use crate::protocol::{ChildReply, Outcome, Work};
use warpgauge_turns::Owner;

/// A [`BuildOutput`] as the cache stores it.
#[derive(Debug, Serialize, Deserialize)]
struct KeptObject {
    key: String,
    #[serde(with = "warpgauge_model::byte_string")]
    object: Vec<u8>,
    how: String,
    log: String,
}

impl Kept for KeptObject {
    fn fits(&self, key: &Key) -> bool {
        self.key == key.to_string()
    }
}

/// Running builds of each owner. A caller that needs an identical build waits for the running one
/// and finds its cached result. No caller waits for another owner's build.
#[derive(Default)]
pub(super) struct Builds(Mutex<HashMap<(Key, Owner), BuildTurn>>);

/// A lock that the building caller holds.
type BuildTurn = Arc<AsyncMutex<()>>;

impl Builds {
    fn turn(&self, key: &Key, owner: Owner) -> BuildTurn {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Each waiting caller holds another reference.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry((key.clone(), owner)).or_default())
    }
}

impl Compiler {
    /// Builds a file for a Python process within a time limit, or finds it in the cache.
    ///
    /// Dropping the future ends the compilers.
    ///
    /// # Errors
    /// Fails if the compilers or this crate reject the sources, or if this machine lacks a tool.
    pub async fn build_for_python(
        &self,
        order: &BuildOrder,
        python: &PythonHost,
        limit: Duration,
        owner: Owner,
    ) -> Result<BuildOutput, CompileError> {
        let plan = planned(order, python, self.toolchain())?;
        let limit = limit.min(self.environment.limit(Some(limit)));
        self.carried_out(plan, limit, owner).await
    }

    /// Builds a whole program within a time limit, or finds it in the cache.
    ///
    /// Dropping the future ends the compilers.
    ///
    /// # Errors
    /// Fails if the compilers or this crate reject the source, or if this machine lacks a tool.
    pub async fn build_program(
        &self,
        order: &ProgramOrder<'_>,
        limit: Duration,
        owner: Owner,
    ) -> Result<BuildOutput, CompileError> {
        let plan = planned_program(order, self.toolchain())?;
        self.carried_out(plan, self.environment.limit(Some(limit)), owner).await
    }

    /// Returns a description of the tool that is missing to build programs, and a remedy. Returns
    /// `None` if nothing is missing.
    pub fn lacks_for_programs(&self) -> Option<(String, String)> {
        let (what, remedy) = lacks_for_programs(self.toolchain())?;
        Some((what.to_owned(), remedy.to_owned()))
    }

    /// Executes a plan within the time limit, unless the owner has a cached result.
    async fn carried_out(
        &self,
        plan: Plan,
        limit: Duration,
        owner: Owner,
    ) -> Result<BuildOutput, CompileError> {
        let key = plan.key().of_owner(owner);
        let options = plan.options.clone();
        if let Some(error) = self.refused.find(&key, limit, Instant::now()) {
            return Err(error);
        }
        let turn = self.builds.turn(&key, owner);
        let _turn = turn.lock().await;
        let (cache, sought) = (Arc::clone(&self.cache), key.clone());
        let found =
            tokio::task::spawn_blocking(move || cache.get_other::<KeptObject>(&sought)).await;
        if let Ok(Some(KeptObject { object, how, log, .. })) = found {
            let key = key.to_string();
            let object = object.into();
            return Ok(BuildOutput { object, key, how, options, log, cached: true });
        }
        let made = self.made(plan, &key, limit, owner).await;
        let built =
            made.inspect_err(|error| self.refused.note(&key, limit, error, Instant::now()))?;
        let kept = KeptObject {
            key: built.key.clone(),
            object: built.object.to_vec(),
            how: built.how.clone(),
            log: built.log.clone(),
        };
        let cache = Arc::clone(&self.cache);
        // Other callers that wait for this build then find the cached file.
        let _ = tokio::task::spawn_blocking(move || cache.put_cold(&key, &kept)).await;
        Ok(built)
    }

    async fn made(
        &self,
        plan: Plan,
        key: &Key,
        limit: Duration,
        owner: Owner,
    ) -> Result<BuildOutput, CompileError> {
        let _turn = self.turn(owner).await?;
        let options = plan.options.clone();
        let reply = self.environment.run_child_for(Work::Build(plan.work()), limit).await;
        let ChildReply { sandbox, result } =
            reply.map_err(|error| exceeded::judged(error, limit))?;
        if let Some(enforced) = sandbox {
            // Only the first result is stored: the operating system's kernel does not change while
            // the process runs.
            let _ = self.sandbox.set(enforced);
        }
        match result {
            Outcome::Object(built) => Ok(BuildOutput {
                object: built.object.into(),
                key: key.to_string(),
                how: built.ways.join("; "),
                options,
                log: built.log,
                cached: false,
            }),
            other => Err(CompileError::of_outcome(other)),
        }
    }
}
