//! Macros for the rows of the table.

/// Defines rows: id, unit, group, description, sources, fields.
macro_rules! metrics {
    ($($id:ident, $unit:ident, $group:ident, $description:literal,
       $sources:expr, [$($field:expr),*];)*) => {
        pub(super) const METRICS: &[MetricInfo] = &[$(MetricInfo {
            id: stringify!($id),
            unit: MetricUnit::$unit,
            group: $group,
            description: $description,
            sources: &$sources,
            fields: &[$($field),*],
        }),*];
    };
}

/// Returns a formula over all floating-point operations of a kernel, with the counters of each
/// chip.
macro_rules! by_chip {
    ($formula:ident $(, $divisor:expr $(, $restriction:ident)?)?) => {
        [
            $formula(FLOPS_60 $(, $divisor)?)$($(.$restriction())?)?.on(30, 69),
            $formula(FLOPS_70 $(, $divisor)?)$($(.$restriction())?)?.until(70),
            $formula(FLOPS_75 $(, $divisor)?)$($(.$restriction())?)?.on(75, 75),
            $formula(FLOPS_80 $(, $divisor)?)$($(.$restriction())?)?.on(80, 88),
            $formula(FLOPS_89 $(, $divisor)?)$($(.$restriction())?)?.on(89, 89),
            $formula(FLOPS_90 $(, $divisor)?)$($(.$restriction())?)?.on(90, 90),
            $formula(FLOPS_90_BY_SPARSITY $(, $divisor)?)$($(.$restriction())?)?.on(90, 90),
            $formula(FLOPS_100 $(, $divisor)?)$($(.$restriction())?)?.on(100, 109),
            $formula(FLOPS_110 $(, $divisor)?)$($(.$restriction())?)?.on(110, 119),
            $formula(FLOPS_120 $(, $divisor)?)$($(.$restriction())?)?.since(120),
        ]
    };
}
