//! `warpgauge explain`: prints the meaning of a code in a report or an error.

mod codes;

use super::CliError;
use super::args::ExplainArgs;
use super::terminal::Terminal;
use crate::exit::Exit;
use codes::meanings;
use warpgauge_model::nearest;

pub(super) fn run(args: &ExplainArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let all = meanings();
    let Some(code) = &args.code else {
        let width = all.keys().map(|code| code.len()).max().unwrap_or_default();
        let lines = all.iter().map(|(code, text)| {
            let first = text.split_inclusive(". ").next().unwrap_or(text);
            let first = first.lines().next().unwrap_or(first).trim();
            format!("{code:width$}  {first}\n")
        });
        terminal.print(&lines.collect::<String>())?;
        return Ok(Exit::Success);
    };
    let wanted = code.trim().to_ascii_lowercase().replace(['-', ' '], "_");
    // If a reference kernel fails, its code is the code of the failure with a prefix.
    let plain = wanted.strip_prefix("reference_").filter(|_| !all.contains_key(&wanted));
    let Some(text) = all.get(plain.unwrap_or(&wanted)) else {
        let meant = nearest(&wanted, all.keys().map(String::as_str));
        let meant =
            meant.map_or_else(|| ".".to_owned(), |code| format!("; did you mean `{code}`?"));
        return Err(CliError::Usage(format!(
            "no code is called `{wanted}`{meant} `warpgauge explain` lists all codes"
        )));
    };
    let of = if plain.is_some() { "The contract's reference kernel failed. " } else { "" };
    terminal.print_line(&format!("{wanted}\n\n{of}{text}"))?;
    Ok(Exit::Success)
}
