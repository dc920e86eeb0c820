//! Names of the reports of `nsys stats`: reports about CUDA, and other reports with descriptions of
//! their content.

/// Content of a report of `nsys stats`, known from the report's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// Activity of the GPU, or calls of the CUDA API.
    Cuda,
    /// Unsupported content, with its description.
    Other(String),
}

/// Reports that are parsed, by their names before and since 2023.
const CUDA: [&str; 18] = [
    "cuda_api_gpu_sum",
    "cuda_api_sum",
    "cuda_gpu_kern_gb_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_size_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_sum",
    "cuda_gpu_trace",
    "cuda_kern_exec_sum",
    "apigpusum",
    "cudaapisum",
    "gpukerngbsum",
    "gpukernsum",
    "gpumemsizesum",
    "gpumemtimesum",
    "gpusum",
    "gputrace",
    "kernexecsum",
];

/// Other reports, by a part of their names, with descriptions of their content.
const OTHERS: [(&str, &str); 19] = [
    ("osrt", "calls of the operating system's libraries"),
    ("syscall", "calls of the operating system"),
    ("cuda_api_trace", "calls of the CUDA API, one by one"),
    ("cudaapitrace", "calls of the CUDA API, one by one"),
    ("apitrace", "calls of the CUDA API, one by one"),
    ("kern_exec_trace", "launches of kernels, one by one"),
    ("kernexectrace", "launches of kernels, one by one"),
    ("nvtx", "ranges that the program marks (NVTX)"),
    ("vulkan", "Vulkan"),
    ("opengl", "OpenGL"),
    ("openmp", "OpenMP"),
    ("openacc", "OpenACC"),
    ("mpi", "MPI"),
    ("ucx", "UCX"),
    ("dx1", "Direct3D"),
    ("wddm", "queues of the Windows driver"),
    ("network", "the network"),
    ("nvvideo", "video"),
    ("um_", "unified memory"),
];

/// Returns the name of the report in a line such as
/// `Processing [x.sqlite] with [/opt/…/cuda_gpu_kern_sum.py]...`,
/// `[4/8] Executing 'cuda_gpu_kern_sum' stats report`, or the title
/// ` ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):`.
pub(super) fn processing(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.starts_with('[')
        && let Some((_, rest)) = line.split_once("] Executing '")
    {
        return rest.split_once("' stats report").map(|(name, _)| name);
    }
    if let Some(title) = line.strip_prefix("** ").and_then(|title| title.strip_suffix("):")) {
        return title.rsplit_once(" (").map(|(_, name)| name);
    }
    let script = line.strip_prefix("Processing [")?.split_once("] with [")?.1;
    let file = script.split(']').next()?.rsplit(['/', '\\']).next()?;
    Some(file.strip_suffix(".py").unwrap_or(file))
}

/// Returns the name of the report that a line of `nsys profile --stats=true` announces:
/// `[4/8] Executing 'cuda_gpu_kern_sum' stats report`. Its table follows, unless it is empty.
pub(super) fn executing(line: &str) -> Option<&str> {
    line.contains("] Executing '").then(|| processing(line))?
}

/// Returns the content of a report of this name; arguments may follow the name.
pub(super) fn report(name: &str) -> Known {
    let name = name.split(':').next().unwrap_or(name);
    match CUDA.contains(&name) {
        true => Known::Cuda,
        false => Known::Other(other(name).map_or_else(
            || format!("data of its report `{}`", name.chars().take(40).collect::<String>()),
            str::to_owned,
        )),
    }
}

fn other(name: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(part, _)| name.contains(part)).map(|(_, what)| *what)
}

/// Returns the content of a file that `nsys stats --output` named, e.g. `report1_osrt_sum.csv`.
/// Returns `None` for other files.
pub(super) fn file(name: &str) -> Option<Known> {
    let stem = name.rsplit(['/', '\\']).next()?.split('.').next()?;
    let ends = |report: &&str| {
        stem.strip_suffix(*report).is_some_and(|rest| rest.is_empty() || rest.ends_with(['_', '-']))
    };
    if let Some(report) = CUDA.iter().find(|report| ends(report)) {
        return Some(self::report(report));
    }
    let is_report = ["_sum", "_trace", "sum", "trace"].iter().any(|end| stem.ends_with(end));
    is_report.then(|| other(stem)).flatten().map(|what| Known::Other(what.to_owned()))
}

/// Returns whether the name of a function shows that it belongs to the CUDA API: `cudaMalloc`,
/// `cuLaunchKernel`.
pub(super) fn is_cuda_call(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    let rest = name.strip_prefix("cuda").or_else(|| name.strip_prefix("cu"));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_files_by_name() {
        let line = "Processing [x.sqlite] with [/opt/reports/cuda_gpu_kern_sum.py]... ";
        assert_eq!(processing(line), Some("cuda_gpu_kern_sum"));
        let line = "[4/8] Executing 'cuda_gpu_kern_sum' stats report";
        assert_eq!(processing(line), Some("cuda_gpu_kern_sum"));
        assert_eq!(processing(" ** CUDA API Summary (cuda_api_sum):"), Some("cuda_api_sum"));
        assert_eq!(processing("** bold (text)"), None);
        assert_eq!(report("cuda_gpu_kern_sum:base"), Known::Cuda);
        assert_eq!(report("gpumemtimesum"), Known::Cuda);
        assert!(matches!(report("openacc_sum"), Known::Other(what) if what == "OpenACC"));
        assert!(matches!(report("new_sum"), Known::Other(what) if what.contains("new_sum")));
        assert_eq!(file("/d/report1_cuda_api_sum.csv"), Some(Known::Cuda));
        assert!(matches!(file("report1_osrt_sum.csv"), Some(Known::Other(_))));
        assert_eq!(file("measured.csv"), None);
        assert_eq!(file("openacc.csv"), None, "a name that says nothing of a report");
    }

    #[test]
    fn calls_of_cuda() {
        for name in ["cudaMalloc", "cuLaunchKernel", "cudaLaunchKernel_v7000", "cuLibraryLoadData"]
        {
            assert!(is_cuda_call(name), "{name}");
        }
        for name in ["poll", "curl_easy_init", "vkQueueSubmit", "cublasCreate", "pthread_join", ""]
        {
            assert!(!is_cuda_call(name), "{name}");
        }
    }
}
