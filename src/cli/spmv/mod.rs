//! `warpgauge spmv`: multiplies sparse matrices with one kernel, and prints a table of the results.

mod against;
mod args;
mod contract;
mod matrices;
mod picture;
mod row;

pub(super) use self::args::SpmvArgs;

use self::against::Rival;
use self::matrices::Matrix;
use self::row::Row;
use super::contract_file::ContractFile;
use super::place::{self, Place};
use super::progress::Progress;
use super::terminal::{Terminal, plain};
use super::{CliError, json, matrix_files};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_contract::EvaluateRequest;
use warpgauge_sparse::spmv::{NamedMatrix, TakesMatrices};

pub(super) fn run(args: &SpmvArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    let matrices = matrices::named(&args.matrices, args.target.server.is_some())?;
    let kernel = contract::kernel(args)?;
    let mut place = place::open(&args.target, args.patience.seconds, config, terminal)?;
    let progress = Progress::start(terminal);
    let width = matrices.iter().map(|one| one.name().chars().count()).max().unwrap_or(0);
    let mut rows: Vec<Row> = Vec::new();
    let mut rival = args.against.map(Rival::new);
    if !args.json {
        progress.beside(|| terminal.print(&row::header(width, rival.is_some())))?;
    }
    for (done, matrix) in matrices.iter().enumerate() {
        let what = format!("{} ({} of {})", matrix.name(), done + 1, matrices.len());
        progress.stage(&place.stage(&what, &what));
        let told = (what.as_str(), &progress);
        let at = (&mut *place, told);
        let row = match product(args, &kernel, matrix, config, (rival.as_mut(), at)) {
            Ok(row) => row,
            // An invalid matrix does not affect the others.
            Err(error) if error.exit() == Exit::Usage => Row::failed(matrix.name(), &error),
            Err(error) => return Err(error),
        };
        if !args.json {
            progress.beside(|| terminal.print(&plain(&row.line(width, rival.is_some()))))?;
        }
        rows.push(row);
    }
    drop((place, progress));
    if args.json {
        terminal.print_line(&json::text("products", &row::answer(&rows, rival.as_ref()))?)?;
    } else {
        terminal.print(&plain(&row::notes(&rows, rival.as_ref())))?;
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, picture::svg(&rows))
            .map_err(|source| CliError::Write { path: path.clone(), source })?;
        terminal.note(&format!("wrote {}", path.display()));
    }
    let worst = rows.iter().map(|row| row.exit).find(|exit| *exit != Exit::Success);
    Ok(worst.unwrap_or(Exit::Success))
}

/// The place where a product runs, and the name and progress display to use.
type Worked<'a, 'p> = (&'a mut (dyn Place + 'p), (&'a str, &'a Progress));

/// Evaluates one product. If the command compares with a library, also evaluates the library's
/// product.
fn product(
    args: &SpmvArgs,
    kernel: &serde_json::Value,
    matrix: &Matrix,
    config: &Config,
    (rival, (place, (what, progress))): (Option<&mut Rival>, Worked<'_, '_>),
) -> Result<Row, CliError> {
    let mut contracts = vec![contract::of(args, kernel, matrix.name())];
    if rival.as_ref().is_some_and(|rival| rival.is_there()) {
        contracts.push(contract::of_cusparse(args, matrix.name())?);
    }
    let mut contracts: Vec<ContractFile> =
        contracts.into_iter().map(|fields| ContractFile::of(matrix.name(), fields)).collect();
    if let Matrix::File(path) = matrix {
        let max_bytes = matrix_files::max_bytes(config);
        let wrong =
            |error: &dyn std::fmt::Display| CliError::Usage(format!("{}: {error}", path.display()));
        let name = matrix.name();
        let tell = |read, bytes| progress.detail(&reading(what, read, bytes));
        let (csr, used) = warpgauge_sparse::spmv::read_matrix_file(path, name, max_bytes, tell)
            .map_err(|error| wrong(&error))?;
        let named = NamedMatrix { name, csr: &csr, max_bytes };
        for contract in &mut contracts {
            let mut request: EvaluateRequest = contract.clone().typed()?;
            // The size of a local file is limited only by the memory of this machine.
            request.put_matrix(&named, &mut { u64::MAX }).map_err(|error| wrong(&error))?;
            request.matrices.push(used.clone());
            contract.fields = match serde_json::to_value(request) {
                Ok(serde_json::Value::Object(fields)) => fields,
                _ => return Err(CliError::Internal("a contract is not a JSON object".to_owned())),
            };
        }
    }
    let mut contracts = contracts.into_iter();
    let mut evaluate = |contract| place.evaluate(contract, progress);
    let mut row = match contracts.next() {
        Some(contract) => Row::of(matrix.name(), &evaluate(contract)?.value),
        None => return Err(CliError::Internal("a product has no contract".to_owned())),
    };
    if let (Some(rival), Some(contract)) = (rival, contracts.next()) {
        progress.stage(&format!("{what}: {}", rival.title()));
        let answer = evaluate(contract);
        row.against = rival.answer(answer.map(|reply| reply.value))?;
    }
    Ok(row)
}

/// Returns a text that states how much of a file has been read.
fn reading(what: &str, read: u64, bytes: u64) -> String {
    let percent = read.min(bytes) * 100 / bytes.max(1);
    format!("{what}: {percent} % of {:.1} MB read", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_large_file_is_read_is_told_on_the_way() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.mtx");
        let lines = 2_500_000;
        let head = format!("%%MatrixMarket matrix coordinate pattern general\n9 9 {lines}\n");
        std::fs::write(&path, head + &"1 2  \n3 4\n".repeat(lines / 2)).unwrap();
        let mut told = Vec::new();
        let tell = |read, bytes| told.push(reading("a.mtx (1 of 1)", read, bytes));
        let (csr, _) =
            warpgauge_sparse::spmv::read_matrix_file(&path, "a.mtx", 1 << 30, tell).unwrap();
        assert_eq!(csr.nnz(), 2);
        // The file is larger than one read, so there are several texts.
        assert!(told[0].starts_with("a.mtx (1 of 1): ") && !told[0].contains("100 %"), "{told:?}");
        assert_eq!(told.last().unwrap(), "a.mtx (1 of 1): 100 % of 12.5 MB read");
        assert_eq!(reading("x", 0, 0), "x: 0 % of 0.0 MB read");
    }
}
