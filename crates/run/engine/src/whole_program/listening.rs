//! The TCP ports on which the tool that started this process listens.
//!
//! The agent of Nsight Systems waits for its injected code on a port that it chooses. It writes the
//! port to files in a private format, so the port is read from `/proc` instead.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use warpgauge_sandbox::contained::others_of_own_tree;

/// Value of a listening socket's state in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Returns the ports of all listening processes that were started together with this process. They
/// belong to the tool and do not include the server's.
///
/// # Errors
/// Fails if `/proc/net/tcp` cannot be read.
pub(crate) fn ports_of_tool() -> io::Result<Vec<u16>> {
    let sockets = others_of_own_tree().into_iter().flat_map(sockets_of).collect();
    Ok(ports(&fs::read_to_string("/proc/net/tcp")?, &sockets))
}

/// Returns the inode numbers of the sockets that a process has open.
fn sockets_of(process: u32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let number = |link: &str| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    links.filter_map(|link| number(&link.to_string_lossy())).collect()
}

/// Returns the ports of the listening sockets among `sockets`, from the text of `/proc/net/tcp`.
fn ports(table: &str, sockets: &BTreeSet<u64>) -> Vec<u16> {
    let port = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        let own = sockets.contains(&inode.parse().ok()?) && *state == LISTENS;
        own.then(|| u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()).flatten()
    };
    table.lines().skip(1).filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn ports_are_those_of_the_sockets_that_listen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connected = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let own: BTreeSet<u64> = sockets_of(std::process::id()).into_iter().collect();
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let found = ports(&table, &own);
        let others = connected.local_addr().unwrap().port();
        assert!(found.contains(&port) && !found.contains(&others), "{found:?}");
        assert!(ports(&table, &BTreeSet::new()).is_empty());
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        assert!(link.to_string_lossy().starts_with("socket:["));
    }
}
