//! The table: id, unit, group, description, NVIDIA's metrics, and the CUDA Evaluation Server's
//! fields.
//!
//! CUPTI 12.9 lists the metrics of every chip from Volta to Blackwell.
//! `tests/fixtures/profile/nvidia-metrics-cupti-12.9.txt` contains these lists.

#[macro_use]
mod macros;
mod access;
mod instructions;
mod names;
mod occupancy;
mod pipelines;
mod roofline;
mod source;
mod stalls;
mod terms;
mod utilisation;

use super::MetricInfo;

const PARTS: [&[MetricInfo]; 7] = [
    utilisation::METRICS,
    pipelines::METRICS,
    occupancy::METRICS,
    stalls::METRICS,
    access::METRICS,
    roofline::METRICS,
    instructions::METRICS,
];

const COUNT: usize = {
    let mut count = 0;
    let mut part = 0;
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

static ALL: [MetricInfo; COUNT] = {
    let mut all = [PARTS[0][0]; COUNT];
    let mut next = 0;
    let mut part = 0;
    while part < PARTS.len() {
        let mut index = 0;
        while index < PARTS[part].len() {
            all[next] = PARTS[part][index];
            next += 1;
            index += 1;
        }
        part += 1;
    }
    all
};

pub static CATALOGUE: &[MetricInfo] = &ALL;
