//! Collects counters: the kernel runs once for each pass, and the session accumulates the values.

use std::ffi::c_void;
use std::rc::Rc;

use super::abi::{
    AUTO_RANGE, CounterAvailability, RangeDataInfo, RangeDataInitialize, RangeDataSize,
    RangeDecode, RangeEnable, RangeObject, RangeSetConfig, RangeStop, USER_REPLAY,
};
use super::error::CuptiError;
use super::host::{CounterPlan, sized};
use super::library::Cupti;
use crate::Context;
use warpgauge_model::Cause;

/// Operation that errors name when the image for the counters cannot be sized or cleared.
const MAKE_ROOM: &str = "make room for the counters";

/// Maximum number of passes in addition to the planned ones. If more are needed, the collection
/// fails.
const SPARE_PASSES: usize = 2;

/// A launch whose counters a session reads.
pub trait CountedLaunch {
    /// Error of preparing or making the launch.
    type Error;

    /// Prepares everything for the launch.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn prepare(&mut self) -> Result<(), Self::Error>;

    /// Makes the launch, which must launch a single kernel, and waits until it has ended.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn launch(&mut self) -> Result<(), Self::Error>;
}

/// Reason why a pass failed.
#[derive(Debug)]
pub enum PassError<E> {
    /// CUPTI could not read the counters.
    Counters(CuptiError),
    /// The launch itself failed.
    Launch(E),
}

impl<E> From<CuptiError> for PassError<E> {
    fn from(error: CuptiError) -> Self {
        PassError::Counters(error)
    }
}

/// Returns the device's available counters, in the form that CUPTI's planning requires. Takes some
/// 70 ms.
///
/// # Errors
/// Fails, for example, while another process collects counters.
pub fn counter_availability(cupti: Cupti, context: &Context) -> Result<Vec<u8>, CuptiError> {
    const OPERATION: &str = "query the device's counters";
    let ask = cupti.functions().counter_availability;
    let mut params = CounterAvailability::new();
    params.context = context.handle();
    cupti.call(OPERATION, ask, &mut params)?;
    let mut image = sized(OPERATION, params.size)?;
    params.image = image.as_mut_ptr();
    cupti.call(OPERATION, ask, &mut params)?;
    image.truncate(params.size);
    Ok(image)
}

/// CUPTI's reservation of a context's counters for one plan. Dropping it ends the reservation.
///
/// Its first pass takes 140 ms longer than later ones, so keeping the session saves time. The
/// session slows nothing down between passes. From its first pass on, however, no other process can
/// read counters.
pub struct CuptiSession {
    cupti: Cupti,
    object: *mut c_void,
    plan: Rc<CounterPlan>,
    /// Image to which CUPTI writes the counters.
    data: Vec<u8>,
    _context: Context,
}

impl CuptiSession {
    /// Reserves the counters of a context's device for a plan. Only one session is possible at a
    /// time, because CUPTI reads the configuration only when the first pass starts.
    ///
    /// # Errors
    /// Fails if this process has no access to the counters.
    pub fn open(
        cupti: Cupti,
        context: &Context,
        plan: Rc<CounterPlan>,
    ) -> Result<Self, CuptiError> {
        let mut params = RangeEnable::new();
        params.context = context.handle();
        cupti.call("reserve the counters", cupti.functions().range_enable, &mut params)?;
        let object = params.object;
        let context = context.clone();
        let mut session = Self { cupti, object, plan, data: Vec::new(), _context: context };
        session.data = session.counter_data()?;
        Ok(session)
    }

    pub fn plan(&self) -> &Rc<CounterPlan> {
        &self.plan
    }

    /// Begins a collection.
    ///
    /// # Errors
    /// Fails if CUPTI rejects the plan.
    pub fn begin(&mut self) -> Result<Collection<'_>, CuptiError> {
        self.clear()?;
        let mut params = RangeSetConfig::new();
        params.object = self.object;
        params.config_size = self.plan.image.len();
        params.config = self.plan.image.as_ptr();
        params.data_size = self.data.len();
        params.data = self.data.as_mut_ptr();
        params.range = AUTO_RANGE;
        params.replay = USER_REPLAY;
        params.ranges_per_pass = 1;
        params.nesting_levels = 1;
        params.first_nesting_level = 1;
        let configure = self.cupti.functions().range_set_config;
        self.cupti.call("set the counters up", configure, &mut params)?;
        Ok(Collection { session: self, passes: 0, complete: false })
    }

    /// Returns an image into which CUPTI writes the counters of one launch.
    fn counter_data(&self) -> Result<Vec<u8>, CuptiError> {
        let names = self.plan.names();
        let mut size = RangeDataSize::new();
        size.object = self.object;
        size.names = names.as_ptr();
        size.count = names.len();
        size.ranges = 1;
        size.nodes = 1;
        self.cupti.call(MAKE_ROOM, self.cupti.functions().range_data_size, &mut size)?;
        sized(MAKE_ROOM, size.size)
    }

    /// Clears the image so that it can receive new counters.
    fn clear(&mut self) -> Result<(), CuptiError> {
        let mut params = RangeDataInitialize::new();
        params.object = self.object;
        params.size = self.data.len();
        params.data = self.data.as_mut_ptr();
        let initialize = self.cupti.functions().range_data_initialize;
        self.cupti.call(MAKE_ROOM, initialize, &mut params)
    }

    fn of_object(&self) -> RangeObject {
        let mut params = RangeObject::new();
        params.object = self.object;
        params
    }
}

impl Drop for CuptiSession {
    fn drop(&mut self) {
        let mut params = self.of_object();
        let disable = self.cupti.functions().range_disable;
        // If the session cannot be ended, nothing more can be done.
        let _ = self.cupti.call("release the counters", disable, &mut params);
    }
}

/// A collection of counters in progress.
pub struct Collection<'s> {
    session: &'s mut CuptiSession,
    passes: usize,
    complete: bool,
}

impl Collection<'_> {
    /// Returns whether all passes have been made.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the number of passes that have been made.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Makes one pass.
    ///
    /// # Errors
    /// Returns an error of the counters or of the launch. After a failed pass, no further pass is
    /// possible.
    pub fn pass<S: CountedLaunch>(&mut self, subject: &mut S) -> Result<(), PassError<S::Error>> {
        let (cupti, functions) = (self.session.cupti, self.session.cupti.functions());
        let planned = self.session.plan.passes;
        if self.complete || self.passes > planned + SPARE_PASSES {
            let text = format!("CUPTI requires more than the {planned} planned passes");
            return Err(CuptiError::local("start a pass", Cause::Unknown, text).into());
        }
        // The preparation precedes the start, because everything launched after the start is
        // counted, and the counters are configured for one launch.
        subject.prepare().map_err(PassError::Launch)?;
        cupti.call("start a pass", functions.range_start, &mut self.session.of_object())?;
        subject.launch().map_err(PassError::Launch)?;
        let mut stop = RangeStop::new();
        stop.object = self.session.object;
        cupti.call("end a pass", functions.range_stop, &mut stop)?;
        self.passes += 1;
        self.complete = stop.all_passes_submitted != 0;
        Ok(())
    }

    /// Returns the value of each of the plan's metrics, in the plan's order. Values may be NaN.
    ///
    /// # Errors
    /// Fails if the counters cannot be read or some were lost.
    pub fn finish(self) -> Result<Vec<f64>, CuptiError> {
        const OPERATION: &str = "read the counters";
        let (cupti, functions) = (self.session.cupti, self.session.cupti.functions());
        let mut decode = RangeDecode::new();
        decode.object = self.session.object;
        cupti.call(OPERATION, functions.range_decode, &mut decode)?;
        let data = &self.session.data;
        let mut info = RangeDataInfo::new();
        info.data = data.as_ptr();
        info.size = data.len();
        cupti.call(OPERATION, functions.range_data_info, &mut info)?;
        if info.ranges != 1 || decode.dropped != 0 {
            let text =
                format!("{} launches were counted, {} were lost", info.ranges, decode.dropped);
            return Err(CuptiError::local(OPERATION, Cause::Unknown, text));
        }
        self.session.plan.evaluate(data, 0)
    }
}
