//! The HTTP API over a service without devices, for trying clients and generators against it.
//!
//! `cargo run --example fake_server -- [PORT] [API_KEY]`; port 0 takes a free one. The address is
//! printed. Ctrl-C ends it.

use std::sync::Arc;

use warpgauge_api as api;
use warpgauge_config::{Config, DEFAULT_TOML};

#[path = "../tests/it/api/fake.rs"]
mod fake;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config: Config = toml::from_str(DEFAULT_TOML)?;
    let mut arguments = std::env::args().skip(1);
    if let Some(port) = arguments.next() {
        config.server.port = port.parse()?;
    }
    config.server.api_keys.extend(arguments.next());
    let shutdown = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    let service = Arc::new(fake::FakeService::new());
    api::serve(&config.server, service.services(), shutdown, |address| {
        println!("http://{address}");
    })
    .await?;
    Ok(())
}
