//! Checks verdicts on requests without a tolerance: no useless candidate of `tests/verdict` may be
//! `correct`, and nearly all honest candidates must be `correct`.

mod corpus;
mod cuda;
mod table;
mod torch;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::corpus::{Class, Language, Problem};
use self::table::Outcome;
use crate::http::Client;
use crate::product::{self, Profile};
use crate::server::Server;
use crate::shell;

/// Number of timed launches of each candidate.
const TRIALS: u32 = 4;

/// Time limit of a request, seconds.
const TIMEOUT_S: f64 = 300.0;

/// Maximum number of candidates in a comparison.
const COMPARED: usize = 6;

/// Options of `bench verdict`.
#[derive(clap::Args)]
pub struct Options {
    /// Program to measure. Default: a new release build.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Device: auto, emulator, or a GPU's ordinal.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Folder that contains the problems.
    #[arg(long, default_value = "tests/verdict")]
    corpus: PathBuf,
    /// Only problems whose names contain this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Number of parallel requests.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// File for all verdicts, as JSON. The server's log is written next to it.
    #[arg(long, default_value = "bench-verdict.json")]
    out: PathBuf,
}

/// A candidate and its source.
struct Candidate {
    class: Class,
    name: String,
    launch: Option<String>,
    source: String,
}

/// Evaluates every candidate, prints the table and writes JSON. Fails if a verdict is not as
/// required.
pub fn run(options: &Options) -> Result<()> {
    let mut folder = options.corpus.clone();
    if !folder.is_dir() {
        folder = shell::root().join(folder);
    }
    let problems = corpus::read(&folder, &options.only)?;
    if problems.is_empty() {
        bail!("no problem in {} has a name that contains `{}`", folder.display(), options.only);
    }
    let program = match &options.program {
        Some(program) => program.clone(),
        None => product::build(Profile::Release)?,
    };
    product::ensure_toolchain(&program)?;
    product::ensure_package(&program, "torch")?;
    let arguments = ["--device".to_owned(), options.device.clone()];
    let log = options.out.with_extension("log");
    let start = Instant::now();
    let server = Server::start_command(Command::new(&program), &arguments, &log)?;
    let outcomes = judge(&problems, &Client::new(&server.url), options.jobs)?;
    drop(server);

    let result = table::Tally::of(&problems, &outcomes);
    println!("{}", result.markdown());
    eprintln!("{:.0} s, {} parallel requests", start.elapsed().as_secs_f64(), options.jobs);
    let text = serde_json::to_string_pretty(&table::json(&outcomes))? + "\n";
    std::fs::write(&options.out, text)
        .with_context(|| format!("cannot write {}", options.out.display()))?;
    result.check()
}

/// Evaluates all problems, `jobs` at a time.
fn judge(problems: &[Problem], client: &Client, jobs: usize) -> Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        while let Some(problem) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut outcomes = judge_one(problem, client).with_context(|| problem.name.clone())?;
            let bad = outcomes.iter().filter(|outcome| !outcome.is_right()).count();
            eprintln!("{}: {} candidates, {bad} not as expected", problem.name, outcomes.len());
            if let Ok(mut all) = all.lock() {
                all.append(&mut outcomes);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => bail!("a thread panicked"),
        })
    })?;
    let mut all = all.into_inner().unwrap_or_default();
    all.sort_by(|a, b| (&a.problem, &a.candidate).cmp(&(&b.problem, &b.candidate)));
    Ok(all)
}

fn judge_one(problem: &Problem, client: &Client) -> Result<Vec<Outcome>> {
    let candidates = candidates(problem)?;
    let mut outcomes = Vec::new();
    let outcome = |candidate: &Candidate, report: &Value| {
        Outcome::of(problem, candidate.class, &candidate.name, report)
    };
    match &problem.language {
        Language::Cuda(signature) => {
            let reference = signature.source(&problem.reference, cuda::RIGHT)?;
            for candidate in &candidates {
                let launch = candidate.launch.as_deref();
                let body = signature.request(&candidate.source, launch, &reference)?;
                let answer = client.post_json("/evaluate", &body)?;
                outcomes.push(outcome(candidate, &answer.body));
            }
        }
        Language::Torch { backward } => {
            for some in candidates.chunks(COMPARED) {
                let sources: Vec<(&str, &str)> =
                    some.iter().map(|c| (c.name.as_str(), c.source.as_str())).collect();
                let body = torch::request(&sources, &problem.reference, *backward);
                let answer = client.post_json("/compare", &body)?.body;
                for (at, candidate) in some.iter().enumerate() {
                    let report = &answer["candidates"][at]["evaluation"];
                    outcomes
                        .push(outcome(candidate, if report.is_null() { &answer } else { report }));
                }
            }
        }
    }
    Ok(outcomes)
}

/// Returns all candidates of a problem: those in its file, the reference, and the useless
/// candidates that are derived from the reference.
fn candidates(problem: &Problem) -> Result<Vec<Candidate>> {
    let mut all = Vec::new();
    let source = |body: &str, store: &str| match &problem.language {
        Language::Cuda(signature) => signature.source(body, store),
        Language::Torch { .. } => Ok(body.to_owned()),
    };
    for section in &problem.sections {
        all.push(Candidate {
            class: section.class,
            name: section.name.clone(),
            launch: section.launch.clone(),
            source: source(&section.source, cuda::RIGHT)?,
        });
    }
    let mut add = |name: &str, source: String| {
        if problem.without.iter().all(|(left_out, _)| left_out != name) {
            let class = Class::Useless;
            all.push(Candidate { class, name: name.to_owned(), launch: None, source });
        }
    };
    match &problem.language {
        Language::Cuda(signature) => {
            for (name, store) in signature.variants() {
                add(name, source(&problem.reference, store)?);
            }
        }
        Language::Torch { .. } => {
            for (name, source) in torch::variants() {
                add(name, source);
            }
        }
    }
    Ok(all)
}
