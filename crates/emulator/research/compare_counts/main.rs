//! Compares the emulator's counts with a GPU's hardware counters.
//!
//! Both run the same launches. On a host with an NVIDIA GPU and Nsight Compute:
//!
//! ```sh
//! ncu --clock-control none --cache-control all --csv --page raw --print-units base \
//!     --section SourceCounters --metrics $(compare_counts --metrics) \
//!     --log-file ncu.csv compare_counts
//! ```
//!
//! Then, on any host, `compare_counts --emulator libwarpgauge_emulator.so --ncu ncu.csv` prints the
//! table of docs/emulator.md (`cargo xtask bench counts --ncu ncu.csv` builds both first). It fails
//! if a difference is not listed in `reasons`. Without `--ncu` it prints checksums of the results
//! and the emulator's counts. `compare_counts --extract ncu.csv` prints the part of the CSV that
//! the comparison uses. `tests/golden` contains it, with the checksums, for
//! `tests/emulator/counts.rs`.

mod cases;
mod columns;
#[path = "../../tests/emulator/common.rs"]
mod common;
mod device;
mod join;
mod profiled;
mod reasons;

use std::path::PathBuf;

/// A description of the failure, in plain language.
type Failure = Box<dyn std::error::Error>;

/// Options of the command line.
#[derive(Default)]
struct Options {
    emulator: Option<PathBuf>,
    ncu: Option<PathBuf>,
    extract: Option<PathBuf>,
    metrics: bool,
}

const USAGE: &str =
    "compare_counts [--metrics | --extract FILE.csv | --emulator LIBRARY [--ncu FILE.csv]]";

fn options() -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut args = std::env::args_os().skip(1);
    while let Some(arg) = args.next() {
        let mut file = || args.next().map(PathBuf::from).ok_or(USAGE);
        match arg.to_str() {
            Some("--metrics") => options.metrics = true,
            Some("--emulator") => options.emulator = Some(file()?),
            Some("--extract") => options.extract = Some(file()?),
            Some("--ncu") => options.ncu = Some(file()?),
            _ => return Err(USAGE.into()),
        }
    }
    if options.ncu.is_some() && options.emulator.is_none() {
        return Err("--ncu requires --emulator, whose counts are compared".into());
    }
    Ok(options)
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    if options.metrics {
        println!("{}", columns::requested());
        return Ok(());
    }
    if let Some(file) = &options.extract {
        print!("{}", profiled::extract(&profiled::read(file)?)?);
        return Ok(());
    }
    let ncu = options.ncu.as_deref().map(profiled::read).transpose()?;
    let mut device = device::Device::open(options.emulator.as_deref())?;
    let mut runs = Vec::new();
    for case in cases::all() {
        let (checksum, counts) = device.run(&case)?;
        if ncu.is_none() {
            println!("{:24} {checksum:016x}", case.label);
        }
        if let Some(counts) = counts {
            runs.push(join::Run { label: case.label, kernel: case.kernel, counts });
        }
    }
    let Some(profiled) = ncu else {
        runs.iter().for_each(|run| print!("{}", join::listing(run)));
        return Ok(());
    };
    let cells = join::cells(&runs, &profiled)?;
    print!("{}", join::table(&cells));
    println!("\n{} of {} launches have no difference.", join::all_equal(&cells), runs.len());
    match &join::surprises(&cells)[..] {
        [] => Ok(()),
        surprises => Err(surprises.join("\n").into()),
    }
}
