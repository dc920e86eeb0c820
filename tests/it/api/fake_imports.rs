//! Imports of the fake service. They parse small texts in this process.

use std::fs::File;
use std::io::Read;

use futures_util::FutureExt;
use warpgauge_metrics::import;
use warpgauge_metrics::select;
use warpgauge_model::FailureCode;
use warpgauge_service::{Caller, ImportOrder, ImportService, Problem, ServiceError, ServiceFuture};

pub struct FakeImports;

fn refused(path: &str, message: String) -> ServiceError {
    let (path, code) = (path.to_owned(), FailureCode::InvalidData);
    ServiceError::invalid(vec![Problem { path, code, message }])
}

impl ImportService for FakeImports {
    fn import<'a>(
        &'a self,
        order: ImportOrder,
        mut content: File,
        _: &'a Caller,
    ) -> ServiceFuture<'a, Vec<u8>> {
        async move {
            let mut read = Vec::new();
            for report in &order.reports {
                let mut bytes = Vec::new();
                content.by_ref().take(report.bytes).read_to_end(&mut bytes).unwrap();
                let selection = select(&order.metrics);
                let imported = import::import_bytes(bytes, &report.name, &selection);
                read.push(imported.map_err(|error| refused(&report.field, error.to_string()))?);
            }
            Ok(match read.as_slice() {
                [report] => serde_json::to_vec(report),
                [before, after] => serde_json::to_vec(&import::changes(before, after).unwrap()),
                _ => panic!("{} reports", read.len()),
            }
            .unwrap())
        }
        .boxed()
    }
}
