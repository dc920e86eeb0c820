//! Collects what the page of the devices shows.

use poem::Request;

use crate::error::ApiError;
use crate::middleware::auth::Sees;
use crate::middleware::hidden_paths::HiddenPaths;
use crate::routes::machine::capabilities::{Capabilities, DeviceCapabilities};
use warpgauge_page::{DeviceOverview, MachineOverview};
use warpgauge_report::Capability;
use warpgauge_service::{Caller, DeviceView, Services};

/// Returns the devices and the capabilities of the machine. The path of the data directory is
/// visible only to administrators, as in the answers for programs.
pub(super) async fn overview(
    request: &Request,
    service: &Services,
) -> Result<MachineOverview, ApiError> {
    let tooling = service.machine.tooling(false).await;
    let unready = service.machine.readiness().await;
    let status = service.machine.status();
    let capabilities = Capabilities::new(&status, &tooling);
    let all = (status, capabilities, unready);
    let sees_everything = matches!(request.data::<Sees>(), Some(Sees::Everything));
    // Without a database there are no statistics, and the page gives the reason in `unready`.
    let statistics = match request.data::<Caller>() {
        Some(caller) if sees_everything => service.machine.statistics(caller).await.ok(),
        _ => None,
    };
    let (status, capabilities, unready) = if sees_everything {
        all
    } else {
        let places = request.data::<HiddenPaths>();
        let none = || ApiError::internal("page", "the page cannot be written");
        places.ok_or_else(none)?.hidden_in(all)?
    };
    // Both lists are in the order of the service's devices.
    let devices = status.devices.into_iter().zip(capabilities.devices);
    Ok(MachineOverview {
        devices: devices.map(|(view, can)| device(view, can)).collect(),
        unready,
        waiting: status.queue_depth,
        capacity: status.queue_capacity,
        kernel_types: capabilities.kernel_types,
        compilers: capabilities.compile.compilers,
        compile_sandbox: capabilities.compile.sandbox,
        tools: capabilities.tools,
        counter_users: capabilities.counter_users,
        warnings: capabilities.warnings,
        statistics,
    })
}

fn device(view: DeviceView, can: DeviceCapabilities) -> DeviceOverview {
    let always =
        [("evaluate kernels", Some(can.evaluate)), ("machine code", Some(can.machine_code))];
    let probed = [
        ("hardware counters", can.counters),
        ("memory and race checks", can.sanitize),
        ("timelines", can.timeline),
    ];
    let own = always.into_iter().chain(probed);
    let own = own.filter_map(|(name, capability)| Some((name.to_owned(), capability?)));
    let sources = can.profile.into_iter().map(|source| {
        let name = format!("metrics from {}", source.name);
        let (available, reason) = (source.available, source.reason);
        (name, Capability { available, reason, code: source.code, remedy: source.remedy })
    });
    DeviceOverview {
        device: view.device,
        state: view.state,
        jobs_done: view.jobs_done,
        restarts: view.restarts,
        worker_sandbox: view.worker_sandbox,
        reading: view.reading,
        no_reading: view.no_reading,
        capabilities: own.chain(sources).collect(),
    }
}
