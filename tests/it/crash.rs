//! Servers and workers that are killed at any moment, under load. Every accepted job ends once, and
//! its stored outcome is the one that its caller received.
//!
//! `WARPGAUGE_CRASH_KILLS` is the number of kills; `cargo xtask bench crash` uses 200 on SQLite.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use sqlx::{Connection, Row};

use crate::contracts::increment;
use crate::lifecycle::children_of;
use crate::server::{try_post, until};
use crate::stores::{Home, on_both};

on_both!(whatever_is_accepted_ends_once_whoever_is_killed);

/// Callers at once.
const CALLERS: usize = 3;

/// Jobs that may wait before callers hold back: the emulator is slower than they are.
const MOST_WAITING: usize = 40;

/// What callers were told.
#[derive(Default)]
struct Told {
    /// Jobs that were accepted or answered, with the report where there was one.
    jobs: Mutex<BTreeMap<String, Option<Value>>>,
    /// Jobs of each idempotency key: more than one where the earlier ones ended without an answer.
    keys: Mutex<BTreeMap<String, BTreeSet<String>>>,
    answers: AtomicUsize,
}

impl Told {
    fn accepted(&self, id: &str, report: Option<Value>) {
        let mut jobs = self.jobs.lock().unwrap();
        let known = jobs.entry(id.to_owned()).or_default();
        if let (Some(before), Some(now)) = (&known, &report) {
            assert_eq!(before, now, "job {id} has two reports");
        }
        if report.is_some() {
            *known = report;
        }
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    fn keyed(&self, key: &str, id: &str) {
        let mut keys = self.keys.lock().unwrap();
        keys.entry(key.to_owned()).or_default().insert(id.to_owned());
    }
}

/// Numbers that look random, the same in each run: a run that fails can be had again, as far as the
/// machine lets it.
struct Dice(u64);

impl Dice {
    /// SplitMix64, Steele et al. 2014.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

/// One caller: submits in every way there is until the server is gone.
fn call(url: &str, caller: usize, dice: &mut Dice, told: &Told, stop: &AtomicBool) {
    let mut body = increment();
    body["num_trials"] = json!(3);
    while !stop.load(Ordering::Relaxed) {
        let id_of = |answer: &Value| answer["job_id"].as_str().unwrap().to_owned();
        // A key that was used before the last crash may come again.
        let key = format!("caller-{caller}-{}", dice.roll(30));
        // The answer is then what is stored.
        let minimal = ("prefer", "return=minimal");
        let (plain, keyed) = ([minimal], [minimal, ("idempotency-key", key.as_str())]);
        let way = dice.roll(4);
        let (path, headers) = match way {
            0 => ("/evaluate", &plain[..]),
            1 => ("/evaluate", &keyed[..]),
            2 => ("/evaluate?wait=false", &keyed[..]),
            _ => ("/evaluate?wait=false", &plain[..]),
        };
        let Some(answer) = try_post(url, path, headers, &body) else { return };
        match answer.status {
            200 => told.accepted(&id_of(&answer.json), Some(answer.json.clone())),
            202 => told.accepted(&id_of(&answer.json), None),
            // Busy, going down, or it lost its worker: nothing was promised.
            409 | 429 | 500 | 503 => continue,
            other => panic!("status {other}: {}", answer.text),
        }
        if headers.len() > plain.len() {
            told.keyed(&key, &id_of(&answer.json));
        }
        let waiting = told.jobs.lock().unwrap().values().filter(|job| job.is_none()).count();
        if waiting > MOST_WAITING {
            // A report takes as long as the device does.
            let Some(answer) = try_post(url, "/evaluate", &keyed, &body) else { return };
            if answer.status == 200 {
                let id = id_of(&answer.json);
                told.keyed(&key, &id);
                told.accepted(&id, Some(answer.json));
            }
        }
    }
}

/// Runs a server under load until so many answers came, then kills it or one of its children.
fn round(home: &Home, dice: &mut Dice, told: &Told) -> &'static str {
    let server = home.start(&[]);
    let stop = AtomicBool::new(false);
    let goal = told.answers.load(Ordering::Relaxed) + dice.roll(12);
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (url, stop) = (server.url.clone(), &stop);
            let mut dice = Dice(dice.roll(usize::MAX) as u64);
            scope.spawn(move || call(&url, caller, &mut dice, told, stop));
        }
        until("answers", || (told.answers.load(Ordering::Relaxed) >= goal).then_some(()));
        // Somewhere between two answers.
        for _ in 0..dice.roll(200_000) {
            std::hint::spin_loop();
        }
        let children = children_of(server.pid());
        let killed = match dice.roll(3) {
            0 if !children.is_empty() => {
                kill(children[dice.roll(children.len())]);
                // The server goes on; it is killed a few answers later.
                let goal = told.answers.load(Ordering::Relaxed) + 2;
                until("answers", || (told.answers.load(Ordering::Relaxed) >= goal).then_some(()));
                "worker and server"
            }
            _ => "server",
        };
        stop.store(true, Ordering::Relaxed);
        server.kill();
        killed
    })
}

fn kill(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// What the database says, read without the program.
async fn examine(home: &Home) -> (String, i64, i64, i64) {
    sqlx::any::install_default_drivers();
    let mut database = sqlx::AnyConnection::connect(&home.url()).await.unwrap();
    let integrity = if home.is_postgres() {
        // It has no such question; that it answers the others is all that is asked of it here.
        "ok".to_owned()
    } else {
        let check = sqlx::query("PRAGMA integrity_check").fetch_one(&mut database).await;
        check.unwrap().get(0)
    };
    let mut count = async |sql: &'static str| -> i64 {
        sqlx::query(sql).fetch_one(&mut database).await.unwrap().get(0)
    };
    let twice = count(
        "SELECT COUNT(*) FROM (SELECT job_id FROM reports GROUP BY job_id HAVING COUNT(*) > 1) \
         AS twice",
    )
    .await;
    let odd = count(
        "SELECT COUNT(*) FROM jobs LEFT JOIN reports ON job_id = id WHERE holder IS NOT NULL \
         OR attempts > max_attempts OR (state = 'completed') <> (job_id IS NOT NULL)",
    )
    .await;
    let all = count("SELECT COUNT(*) FROM jobs").await;
    (integrity, twice, odd, all)
}

fn whatever_is_accepted_ends_once_whoever_is_killed(home: &Home) {
    let few = if home.is_postgres() { 6 } else { 20 };
    let kills: usize = std::env::var("WARPGAUGE_CRASH_KILLS")
        .map_or(few, |text| text.parse().expect("WARPGAUGE_CRASH_KILLS is a number"));
    let seed = std::env::var("WARPGAUGE_CRASH_SEED").map_or(7, |text| text.parse().unwrap());
    let (told, mut dice) = (Told::default(), Dice(seed));
    let began = Instant::now();
    let mut done = BTreeMap::<&str, usize>::new();
    let mut count = 0;
    while count < kills {
        let killed = round(home, &mut dice, &told);
        *done.entry(killed).or_default() += 1;
        count += if killed == "server" { 1 } else { 2 };
    }
    let (jobs, keys) = (told.jobs.into_inner().unwrap(), told.keys.into_inner().unwrap());
    let server = home.start(&[]);
    let mut ends = BTreeMap::<String, usize>::new();
    let mut attempts = BTreeMap::<u64, usize>::new();
    let mut exhausted = BTreeSet::new();
    for (id, answered) in &jobs {
        let job = until(&format!("the end of {id}"), || {
            let job = server.get(&format!("/jobs/{id}"));
            assert_eq!(job.status, 200, "job {id} is lost: {}", job.text);
            job.json["finished_at"].is_number().then_some(job.json)
        });
        if let Some(answered) = answered {
            assert_eq!(&job["result"], answered, "job {id} was answered otherwise");
        }
        let end = job["code"].as_str().or(job["state"].as_str()).unwrap();
        *ends.entry(end.to_owned()).or_default() += 1;
        if end == "attempts_exhausted" {
            exhausted.insert(id);
        }
        *attempts.entry(job["attempt"].as_u64().unwrap()).or_default() += 1;
    }
    for (key, jobs) in &keys {
        let lasting: Vec<_> = jobs.iter().filter(|id| !exhausted.contains(id)).collect();
        assert!(lasting.len() <= 1, "key {key} stands for several jobs: {lasting:?}");
    }
    // What nobody was told of ends as well.
    until("the end of all jobs", || {
        let open =
            server.get("/jobs?state=queued&state=compiling&state=profiling&state=validating");
        assert_eq!(open.status, 200, "{}", open.text);
        open.json["jobs"].as_array().unwrap().is_empty().then_some(())
    });
    server.terminate();
    let (status, output) = server.wait();
    assert!(status.success(), "{output}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (integrity, twice, odd, all) = runtime.block_on(examine(home));
    println!(
        "{count} kills ({done:?}) in {:.0} s: {} jobs accepted of {all} in the store; ended \
         {ends:?}, after attempts {attempts:?}; 0 lost, {twice} reports twice, {odd} odd rows, \
         integrity {integrity}",
        began.elapsed().as_secs_f64(),
        jobs.len(),
    );
    assert_eq!(integrity, "ok");
    assert_eq!((twice, odd), (0, 0));
    let known = ["completed", "attempts_exhausted"];
    assert!(ends.keys().all(|end| known.contains(&end.as_str())), "{ends:?}");
}
