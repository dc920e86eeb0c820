//! Compares the emulator with a GPU, instruction by instruction.
//!
//! - `dump --driver PATH --out FILE` runs all forms through a CUDA driver (`libcuda.so.1`, or the
//!   emulator's library by its path) and stores every result.
//! - `dump --out FILE` runs them on the emulator directly.
//! - `diff GPU EMULATOR` compares two dumps in full and describes the differences.
//! - `show DUMP NAME` prints operands and results of the forms whose name begins with NAME.
//! - `golden GPU FILE` writes the golden file for the tests.
//! - `ptx DIRECTORY` writes the modules.

#[path = "../../tests/emulator/differential/suite/mod.rs"]
mod suite;

mod driver;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use suite::compare::compare;
use suite::dump::{Dump, Record, Writer};
use suite::form::{self, Class, Form};
use suite::{emulate, forms, golden, module};

/// Exit status of a process whose work another process must continue.
const AGAIN: u8 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["dump", "--driver", driver, "--out", out] => dump(driver, Path::new(out)),
        ["resume", driver, out] => resume(Path::new(driver), Path::new(out)),
        ["dump", "--out", out] => dump_emulator(Path::new(out)),
        ["diff", a, b] => diff(Path::new(a), Path::new(b)),
        ["show", dump, name] => show(Path::new(dump), name),
        ["golden", dump, out] => make_golden(Path::new(dump), Path::new(out)),
        ["ptx", dir] => write_ptx(Path::new(dir)),
        _ => Err("usage: dump [--driver PATH] --out FILE | diff GPU EMULATOR | \
                  show DUMP NAME | golden GPU FILE | ptx DIRECTORY"
            .into()),
    };
    result.unwrap_or_else(|e| {
        eprintln!("{e}");
        ExitCode::FAILURE
    })
}

fn file<T>(path: &Path, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|e| format!("{}: {e}", path.display()))
}

/// Starts one process after another until one completes: a form that fails can break or end its
/// process.
fn dump(driver: &str, out: &Path) -> Result<ExitCode, String> {
    if out.exists() {
        return Err(format!("{} exists; remove it to start again", out.display()));
    }
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    for _ in 0..200 {
        let mut child = Command::new(&exe);
        let child = child.args(["resume", driver]).arg(out);
        let status = child.status().map_err(|e| e.to_string())?;
        match status.code() {
            Some(code) if code == i32::from(AGAIN) => {}
            Some(0) => return summary(out),
            _ => return Err(format!("the run ended with {status}")),
        }
    }
    Err("too many forms fail".into())
}

fn resume(path: &Path, out: &Path) -> Result<ExitCode, String> {
    let forms = forms::all();
    let fingerprint = module::fingerprint(&forms);
    let mut driver = driver::Driver::open(path, &forms)?;
    let mut writer = if out.exists() {
        file(out, Writer::append(out))?
    } else {
        file(out, Writer::create(out, &driver.origin, fingerprint))?
    };
    let done = Dump::read(out)?.records;
    for m in module::modules(&forms) {
        let mut put = |i: usize, record: Record| {
            if let Record::Refused(why) | Record::Failed(why) = &record {
                eprintln!("{}: {why}", forms[i].name);
            }
            file(out, writer.put(i, &record))
        };
        driver.run(&forms, &m, &|i| !done.contains_key(&i), &mut put)?;
        if driver.broken {
            return Ok(ExitCode::from(AGAIN));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn dump_emulator(out: &Path) -> Result<ExitCode, String> {
    let forms = forms::all();
    let fingerprint = module::fingerprint(&forms);
    let mut writer = file(out, Writer::create(out, "emulator", fingerprint))?;
    for m in module::modules(&forms) {
        for (i, record) in emulate::run(&forms, &m) {
            if let Record::Refused(why) | Record::Failed(why) = &record {
                eprintln!("{}: {why}", forms[i].name);
            }
            file(out, writer.put(i, &record))?;
        }
    }
    summary(out)
}

fn summary(out: &Path) -> Result<ExitCode, String> {
    let dump = Dump::read(out)?;
    let count = |f: fn(&Record) -> bool| dump.records.values().filter(|r| f(r)).count();
    println!(
        "{}: {} forms ran, {} were refused, {} failed; {}",
        out.display(),
        count(|r| matches!(r, Record::Ran(_))),
        count(|r| matches!(r, Record::Refused(_))),
        count(|r| matches!(r, Record::Failed(_))),
        dump.origin
    );
    Ok(ExitCode::SUCCESS)
}

/// Reads a dump. Returns an error if it was made with another version of the suite.
fn read(path: &Path, fingerprint: u64) -> Result<Dump, String> {
    let dump = Dump::read(path)?;
    if dump.fingerprint == fingerprint {
        return Ok(dump);
    }
    Err(format!("{}: it was created with other forms; create it again", path.display()))
}

fn diff(a: &Path, b: &Path) -> Result<ExitCode, String> {
    let forms = forms::all();
    let fingerprint = module::fingerprint(&forms);
    let (gpu, emulator) = (read(a, fingerprint)?, read(b, fingerprint)?);
    let mut different = [0usize; 2];
    let mut worst: Vec<(f64, &str)> = Vec::new();
    for (i, form) in forms.iter().enumerate() {
        let approx = matches!(form.class, Class::Approx(_));
        match (gpu.records.get(&i), emulator.records.get(&i)) {
            (Some(Record::Ran(want)), Some(Record::Ran(got))) => {
                let want = |o: usize, t: usize| want[form.output_at(o, t)].to_vec();
                let d = compare(form, &want, got, form.threads());
                if approx {
                    worst.push((d.worst, &form.name));
                }
                if d.threads > 0 {
                    different[usize::from(approx)] += 1;
                    describe(form, &d.details, d.threads, d.worst);
                }
            }
            (x, y) => println!("{}: not compared: {} / {}", form.name, state(x), state(y)),
        }
    }
    worst.sort_by(|x, y| y.0.total_cmp(&x.0));
    println!("approximate forms, the largest difference in units of the bound:");
    worst.iter().for_each(|(w, name)| println!("  {w:8.3} {name}"));
    println!(
        "{} forms; {} exact and {} approximate forms differ; {} / {}",
        forms.len(),
        different[0],
        different[1],
        gpu.origin,
        emulator.origin
    );
    Ok(ExitCode::from(u8::from(different != [0, 0])))
}

fn state(record: Option<&Record>) -> String {
    match record {
        None => "it did not run".into(),
        Some(Record::Ran(_)) => "ran".into(),
        Some(Record::Refused(why)) => format!("refused: {why}"),
        Some(Record::Failed(why)) => format!("failed: {why}"),
    }
}

fn describe(form: &Form, details: &[String], threads: usize, worst: f64) {
    let all = form.threads();
    println!("{} [{:?}]: {threads} of {all} threads differ ({worst:.3})", form.name, form.class);
    details.iter().for_each(|d| println!("    {d}"));
}

fn show(dump: &Path, name: &str) -> Result<ExitCode, String> {
    let forms = forms::all();
    let dump = read(dump, module::fingerprint(&forms))?;
    for (i, form) in forms.iter().enumerate().filter(|(_, f)| f.name.starts_with(name)) {
        println!("{}\n{}", form.name, form.body.trim_end());
        let Some(Record::Ran(bytes)) = dump.records.get(&i) else {
            println!("{}", state(dump.records.get(&i)));
            continue;
        };
        let inputs = form.inputs();
        for t in 0..form.threads() {
            let hex = |v: u64| format!(" {v:x}");
            let ins = (0..form.ins.len()).map(|n| hex(form.operand(&inputs, n, t)));
            let at = |n: usize| bytes[form.output_at(n, t)].chunks(8).map(form::little).map(hex);
            let outs = (0..form.outs.len()).flat_map(at);
            println!("{t}:{} ->{}", ins.collect::<String>(), outs.collect::<String>());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn make_golden(dump: &Path, out: &Path) -> Result<ExitCode, String> {
    let forms = forms::all();
    let dump = read(dump, module::fingerprint(&forms))?;
    let bytes = golden::encode(&forms, &dump);
    file(out, std::fs::write(out, &bytes))?;
    println!("{}: {} forms, {} bytes", out.display(), forms.len(), bytes.len());
    Ok(ExitCode::SUCCESS)
}

fn write_ptx(dir: &Path) -> Result<ExitCode, String> {
    let forms = forms::all();
    for (n, m) in module::modules(&forms).iter().enumerate() {
        let path: PathBuf = dir.join(format!("m{n}.ptx"));
        file(&path, std::fs::write(&path, &m.text))?;
    }
    println!("{} forms", forms.len());
    Ok(ExitCode::SUCCESS)
}
