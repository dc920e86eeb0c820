//! Reasons why a tool returned no data: stable codes, each with a remedy. The main type is
//! [`Cause`].

use super::unavailable::Unavailable;

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $variant:ident, $code:literal, $remedy:literal;)*) => {
        /// Reason why a tool returned no data.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Cause {
            pub const ALL: &[Cause] = &[$(Cause::$variant),*];

            /// Stable code in responses.
            pub fn code(self) -> &'static str {
                match self {
                    $(Cause::$variant => $code,)*
                }
            }

            /// Meaning of the code, a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Cause::$variant => concat!($($doc),+).trim(),)*
                }
            }

            /// Remedy for people.
            pub fn remedy(self) -> &'static str {
                match self {
                    $(Cause::$variant => $remedy,)*
                }
            }
        }
    };
}

causes! {
    /// The driver allows only administrators to read counters.
    NoPermission, "no_permission",
        "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the service \
         CAP_SYS_ADMIN; `RmProfilingAdminOnly` in /proc/driver/nvidia/params shows the setting";
    /// Another process uses the counters.
    CountersBusy, "counters_busy",
        "end or pause the other profiler, e.g. `dcgmi profile --pause`, and try again; one process \
         at a time can read counters, on all GPUs of a machine";
    /// The tool cannot load the driver library that reads counters.
    NoProfilerLibrary, "no_profiler_library",
        "make the driver's libraries available in the container (NVIDIA_DRIVER_CAPABILITIES=all), \
         or run outside the sandbox";
    /// The versions of the tool and of the driver are incompatible.
    DriverMismatch, "driver_mismatch",
        "install a tool as new as the driver, or a newer driver";
    /// The tool does not support the GPU.
    UnsupportedDevice, "unsupported_device",
        "install a version of the tool that supports this GPU";
    /// The GPU does not support performance monitoring (GPM).
    NoMonitoring, "no_monitoring",
        "run the contract on a Hopper GPU or later, with a driver of CUDA 12 or later";
    /// The GPU is virtual or partitioned, or in confidential computing mode.
    UnsupportedMode, "unsupported_mode",
        "virtual machines, partitions and confidential computing have no access to counters \
         unless the host allows it: ask its administrator";
    /// The tool found no driver.
    NoDriver, "no_driver",
        "install the driver, and remove stubs of libcuda.so from the library path";
    /// The program launched no requested kernel.
    NoKernel, "no_kernel",
        "check that the kernel ran, and that the filter names it";
    /// The metrics need more launches than are allowed.
    TooManyPasses, "too_many_passes",
        "ask for fewer metrics; `POST /profile/plan` returns the number of passes that they need";
    /// The metric is unknown on this device.
    UnknownMetric, "unknown_metric",
        "leave the metric out; `ncu --query-metrics` lists the available ones";
    /// The tool could not profile this kernel.
    KernelFailed, "kernel_not_profiled",
        "try again with fewer metrics; if the error persists, see the tool's log";
    /// The tool could not write its own files.
    NoFiles, "no_tool_files",
        "give the tool a HOME and a TMPDIR that it can write to, and its sections directory";
    /// The disk is full.
    DiskFull, "disk_full",
        "free some space on the disk of TMPDIR";
    /// The program under the tool failed.
    ApplicationFailed, "application_failed",
        "run the kernel without the tool, to see whether it fails by itself or because of the tool";
    /// The tool's export is older than its report.
    StaleExport, "stale_export",
        "export again with --force-export=true";
    /// A newer version of the tool made the report.
    NewerReport, "newer_report",
        "export with the version of the tool that made the report, or a newer one";
    /// The report has no such data.
    NoData, "no_data",
        "the program did no such work while it was traced: trace the whole program";
    /// The tool has no report of that name.
    UnknownReport, "unknown_report",
        "use a report of this version of the tool; `nsys stats --help-reports` lists them";
    /// The tool did not end in time.
    TimedOut, "timed_out",
        "allow the tool more time, or ask for fewer metrics";
    /// The tool was killed or died.
    ToolDied, "tool_died",
        "see the tool's log; a lack of memory is the usual cause";
    /// The tool is not installed.
    NoTool, "no_tool",
        "install the tool, or put it on the PATH";
    /// The output of the tool is malformed.
    Unreadable, "unreadable_output",
        "keep the file and report the problem: the output of this version of the tool is in an \
         unknown format";
    /// The tool failed for an unknown reason.
    Unknown, "tool_failed",
        "see the tool's log";
}

impl Unavailable {
    /// Returns the cause of `code`; `None` if this version does not know the code.
    pub fn cause(&self) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|cause| cause.code() == self.code)
    }
}

impl Cause {
    /// Returns the cause in the form for responses, with the reason in this case.
    pub fn because(self, reason: impl Into<String>) -> Unavailable {
        Unavailable {
            code: self.code().to_owned(),
            reason: reason.into(),
            remedy: self.remedy().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_plain() {
        let codes: BTreeSet<&str> = Cause::ALL.iter().map(|cause| cause.code()).collect();
        assert_eq!(codes.len(), Cause::ALL.len());
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(codes.iter().all(|code| code.chars().all(plain)));
    }
}
