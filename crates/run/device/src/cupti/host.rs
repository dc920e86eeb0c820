//! Plans the collection of metrics, and evaluates them. A plan contains the required counters and
//! the number of passes. Neither step needs a GPU if the chip's name is known.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};

use super::abi::{
    HostAddMetrics, HostChips, HostDeinitialize, HostEvaluate, HostImage, HostImageSize,
    HostInitialize, HostPasses, RANGE_PROFILER,
};
use super::error::CuptiError;
use super::library::Cupti;
use warpgauge_model::Cause;

/// Maximum size of a configuration, bytes. The configuration of a hundred metrics takes some 100
/// kB.
const MAX_IMAGE_BYTES: usize = 64 << 20;

/// Plan for collecting metrics on a chip.
pub struct CounterPlan {
    host: Host,
    /// Configuration of the counters for each pass.
    pub(super) image: Vec<u8>,
    /// The metrics that can be collected.
    metrics: Vec<CString>,
    /// Number of launches that the metrics need.
    pub passes: usize,
    /// The unavailable metrics, each with the reason.
    pub refused: BTreeMap<String, String>,
}

impl CounterPlan {
    /// Plans the collection of `metrics`, which are NVIDIA's names, on a chip. `availability` is
    /// the device's own list of available counters.
    ///
    /// # Errors
    /// Fails if the chip or all metrics are unknown.
    pub fn new(
        cupti: Cupti,
        chip: &str,
        availability: Option<&[u8]>,
        metrics: &[String],
    ) -> Result<Self, CuptiError> {
        const OPERATION: &str = "plan the passes";
        let mut refused = BTreeMap::new();
        let mut names = Vec::new();
        for name in metrics {
            match CString::new(name.as_str()) {
                Ok(text) if !name.is_empty() => names.push(text),
                _ => drop(refused.insert(name.clone(), "no metric has this name".to_owned())),
            }
        }
        // All metrics are added in one call, because metrics that are added one by one do not share
        // passes (16 passes instead of 9 for five throughputs of an H100). An unknown metric makes
        // the object unusable.
        let mut host = Host::open(cupti, chip, availability)?;
        if !names.is_empty() && host.add(&names).is_err() {
            let mut known = Vec::new();
            for name in names {
                match Host::open(cupti, chip, availability)?.add(std::slice::from_ref(&name)) {
                    Ok(()) => known.push(name),
                    Err(_) => {
                        let reason = format!("{chip} has no such counter");
                        refused.insert(name.to_string_lossy().into_owned(), reason);
                    }
                }
            }
            names = known;
            host = Host::open(cupti, chip, availability)?;
            if !names.is_empty() {
                host.add(&names)?;
            }
        }
        if names.is_empty() {
            let text = format!("none of the metrics is known for {chip}");
            return Err(CuptiError::local(OPERATION, Cause::UnknownMetric, text));
        }
        let image = host.image()?;
        let passes = host.passes(&image)?;
        Ok(Self { host, image, metrics: names, passes, refused })
    }

    /// Returns whether CUPTI adds instructions to the kernel to obtain some of the metrics.
    pub fn is_instrumented(&self) -> bool {
        self.metrics().any(|name| name.to_string_lossy().contains("__sass_"))
    }

    /// Returns the names of the metrics that can be collected.
    pub fn metrics(&self) -> impl Iterator<Item = &CStr> {
        self.metrics.iter().map(CString::as_c_str)
    }

    pub(super) fn names(&self) -> Vec<*const c_char> {
        self.metrics.iter().map(|name| name.as_ptr()).collect()
    }

    /// Returns the value of each metric for a range of the counter data, in the order of
    /// [`Self::metrics`].
    pub(super) fn evaluate(&self, data: &[u8], range: usize) -> Result<Vec<f64>, CuptiError> {
        let names = self.names();
        let mut values = vec![f64::NAN; names.len()];
        let mut params = HostEvaluate::new();
        params.object = self.host.object;
        params.data = data.as_ptr();
        params.size = data.len();
        params.range = range;
        params.names = names.as_ptr();
        params.count = names.len();
        params.values = values.as_mut_ptr();
        let cupti = self.host.cupti;
        cupti.call("evaluate the counters", cupti.functions().host_evaluate, &mut params)?;
        Ok(values)
    }
}

/// CUPTI's host object, which handles one set of metrics.
struct Host {
    cupti: Cupti,
    object: *mut c_void,
    // CUPTI stores pointers to these, and its documentation does not say that it copies the data.
    _chip: CString,
    _availability: Option<Vec<u8>>,
}

impl Host {
    fn open(cupti: Cupti, chip: &str, availability: Option<&[u8]>) -> Result<Self, CuptiError> {
        let operation = format!("prepare for chip {chip}");
        let name = CString::new(chip).map_err(|_| {
            CuptiError::local(&operation, Cause::UnsupportedDevice, "no chip has this name")
        })?;
        let availability = availability.map(<[u8]>::to_vec);
        let mut params = HostInitialize::new();
        params.kind = RANGE_PROFILER;
        params.chip = name.as_ptr();
        params.availability = availability.as_ref().map_or(std::ptr::null(), |a| a.as_ptr());
        cupti.call(&operation, cupti.functions().host_initialize, &mut params)?;
        let object = params.object;
        Ok(Self { cupti, object, _chip: name, _availability: availability })
    }

    fn add(&mut self, metrics: &[CString]) -> Result<(), CuptiError> {
        let names: Vec<*const c_char> = metrics.iter().map(|name| name.as_ptr()).collect();
        let mut params = HostAddMetrics::new();
        params.object = self.object;
        params.names = names.as_ptr();
        params.count = names.len();
        let add = self.cupti.functions().host_add_metrics;
        self.cupti.call("schedule the metrics", add, &mut params)
    }

    fn image(&self) -> Result<Vec<u8>, CuptiError> {
        const OPERATION: &str = "set up the counters";
        let functions = self.cupti.functions();
        let mut size = HostImageSize::new();
        size.object = self.object;
        self.cupti.call(OPERATION, functions.host_image_size, &mut size)?;
        let mut image = sized(OPERATION, size.size)?;
        let mut params = HostImage::new();
        params.object = self.object;
        params.size = image.len();
        params.image = image.as_mut_ptr();
        self.cupti.call(OPERATION, functions.host_image, &mut params)?;
        Ok(image)
    }

    fn passes(&self, image: &[u8]) -> Result<usize, CuptiError> {
        let mut params = HostPasses::new();
        params.size = image.len();
        params.image = image.as_ptr();
        self.cupti.call("count the passes", self.cupti.functions().host_passes, &mut params)?;
        Ok(params.passes)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let mut params = HostDeinitialize::new();
        params.object = self.object;
        // An object that cannot be released is leaked.
        let deinitialize = self.cupti.functions().host_deinitialize;
        let _ = self.cupti.call("release a plan", deinitialize, &mut params);
    }
}

/// Returns a zeroed image of a size that the library requires.
pub(super) fn sized(operation: &str, bytes: usize) -> Result<Vec<u8>, CuptiError> {
    if bytes > MAX_IMAGE_BYTES {
        let text = format!("CUPTI requires {bytes} bytes for it; the limit is {MAX_IMAGE_BYTES}");
        return Err(CuptiError::local(operation, Cause::Unknown, text));
    }
    Ok(vec![0; bytes])
}

/// Returns the chips that this CUPTI supports.
///
/// # Errors
/// Fails if the libraries in CUPTI's folder are missing.
pub fn chips(cupti: Cupti) -> Result<Vec<String>, CuptiError> {
    let mut params = HostChips::new();
    cupti.call("list the chips", cupti.functions().host_chips, &mut params)?;
    let name = |index| {
        // SAFETY: by the library's contract the list has `count` entries, each a NUL-terminated
        // text.
        let text = unsafe { CStr::from_ptr(*params.names.add(index)) };
        text.to_string_lossy().into_owned()
    };
    Ok((0..params.count).map(name).collect())
}
