//! Functions of the service without devices: a call returns its program as one record.

use futures_util::FutureExt;
use warpgauge_contract::functions::{
    CallStatus, FunctionCall, FunctionOutcome, FunctionPlaces, OutcomeHead, PlaceKind,
};
use warpgauge_service::{FunctionService, ServiceFuture};

const PLACES: &str = include_str!("../../../openapi/examples/function_places.json");

/// See the module.
pub struct FakeFunctions;

impl FunctionService for FakeFunctions {
    fn function_places(&self) -> FunctionPlaces {
        serde_json::from_str(PLACES).expect("examples/function_places.json is a FunctionPlaces")
    }

    fn call_function(&self, call: FunctionCall) -> ServiceFuture<'_, FunctionOutcome> {
        async move {
            let head = OutcomeHead {
                again: false,
                status: CallStatus::Ended,
                reason: None,
                place: PlaceKind::Cpu,
                device: None,
                queue_ms: 0.0,
                run_ms: 0.0,
                printed: String::new(),
            };
            let length =
                u32::try_from(call.program.len()).expect("tests send little").to_le_bytes();
            Ok(FunctionOutcome { head, records: [&length[..], &call.program].concat() })
        }
        .boxed()
    }
}
